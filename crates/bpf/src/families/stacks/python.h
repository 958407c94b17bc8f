// Functions of Python on the stack.
//
// An interpreter keeps a frame for each function, linked from the innermost on; the C stack only
// shows its evaluation loop, which is the same for all. Frames are therefore read at each call and
// are part of the stack's fingerprint.
//
// The layout of frames depends on the version; `interpreters.h` finds the version. A frame without
// a valid code object ends the chain.
#pragma once

#include "interpreters.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define REPORTED_CODES 16384
#define MOST_THREADS 256
#define SEARCHED_ONCE_IN 64
#define FRAME_WORDS 9
// Words of a code object that are read, from its second word on: type, size, ..., lines.
#define CODE_WORDS 17
#define code_word(offset) ((offset) / 8 - 1)
// Words from the frame to the id of a thread; a power of two.
#define THREAD_WORDS 16
// Words of a string before its characters.
#define TEXT_WORDS 5
// Words of a table of lines that are hashed: size, hash, the first entries.
#define LINES_WORDS 4
#define OWNED_BY_C_STACK 3

struct reported_codes {
	u64 ids[REPORTED_CODES]; // each slot contains the last id that was reported for it
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE); // as `reported`
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, sizeof(struct reported_codes)); // set before loading
} reported_codes SEC(".maps");

struct python_thread {
	u64 state; // address of the interpreter's state of the thread
	u64 searches; // failed searches since the last success
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct python_thread);
} python_threads SEC(".maps");

struct scratch_python {
	struct python_frame frames[PYTHON_FRAMES];
	u64 codes[PYTHON_FRAMES]; // addresses
	u64 frame[FRAME_WORDS];
	u64 code[CODE_WORDS];
	u64 lines[LINES_WORDS];
	u64 thread[THREAD_WORDS]; // the first word leads to the innermost frame
	u64 text[TEXT_WORDS];
	u32 number, flags;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch_python);
} scratch_pythons SEC(".maps");

struct searching {
	struct python *python;
	u64 interpreter, state, wanted;
};

// Visit a thread of an interpreter, or continue with the next interpreter. Returns 1 at the end.
static long search_thread(u32 index, struct searching *searching)
{
	struct python *python = searching->python;
	u64 id = 0;

	if (!searching->state) {
		if (read_user(searching->interpreter, searching->interpreter + python->next_interpreter) || !searching->interpreter)
			return 1;
		read_user(searching->state, searching->interpreter + python->threads);
		return 0;
	}
	if (read_user(id, searching->state + python->thread_id) || id == searching->wanted)
		return 1;
	if (read_user(searching->state, searching->state + python->next_thread))
		searching->state = 0;
	return 0;
}

// Read the needed part of a thread state at once. Returns whether it is that of the wanted thread.
static __always_inline bool is_thread(u64 state, struct python *python, struct scratch_python *scratch, u64 wanted)
{
	u32 id_at = ((u32)python->thread_id - (u32)python->frame) / 8;

	if (id_at >= THREAD_WORDS || read_user(scratch->thread, state + python->frame))
		return 0;
	return *(volatile u64 *)&scratch->thread[id_at & (THREAD_WORDS - 1)] == wanted;
}

// Find the interpreter's state of the running thread, which leads to its innermost frame, and read
// it to the scratch; false: there is none. Threads are identified by pthread_self, which is the
// same in all namespaces and in forked children.
static __always_inline bool find_thread(struct task_struct *task, struct python *python, struct scratch_python *scratch)
{
	struct python_thread *thread = bpf_task_storage_get(&python_threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	u64 wanted = task->thread.fsbase;

	if (!thread)
		return 0;
	if (thread->state && is_thread(thread->state, python, scratch, wanted))
		return 1;
	// Threads of C rarely become threads of Python.
	thread->state = 0;
	u64 searches = thread->searches++;
	if (searches & (searches - 1) && searches % SEARCHED_ONCE_IN)
		return 0;
	struct searching searching = { .python = python, .wanted = wanted };
	if (read_user(searching.interpreter, python->runtime + python->interpreters) || !searching.interpreter)
		return 0;
	read_user(searching.state, searching.interpreter + python->threads);
	bpf_loop(MOST_THREADS, search_thread, &searching, 0);
	if (!searching.state || !is_thread(searching.state, python, scratch, wanted))
		return 0;
	thread->state = searching.state;
	thread->searches = 0;
	return 1;
}

struct walking {
	struct python *python;
	struct scratch_python *scratch;
	u64 frame, h, process;
};

// The id of the code object with the words in the scratch. A code object that replaces another one
// in memory differs in one of these words.
static __always_inline u64 id_of_code(struct walking *walking, u64 address)
{
	u64 *words = walking->scratch->code;
	// Independent products of: size, flags with the first line, from 3.12 on a unique version
	// number, file, name, lines.
	u64 sum = words[code_word(16)] * 0x9e3779b97f4a7c15ULL + words[code_word(64)] * 0xc2b2ae3d27d4eb4fULL +
		  words[code_word(72)] * 0x165667b19e3779f9ULL + words[code_word(88)] * 0xd6e8feb86659fd93ULL +
		  words[code_word(112)] * 0xa0761d6478bd642fULL + words[code_word(128)] * 0xe7037ed1a0b428dbULL +
		  words[code_word(136)] * 0x8ebc6af09c88c6e3ULL;
	u64 id = mix(mix(walking->process, address), sum);
	if (walking->python->version != 311 || (u32)words[code_word(72)] > 1)
		return id;
	// All modules begin at line 1, and 3.11 has no unique number.
	u64 *lines = walking->scratch->lines;
	bpf_probe_read_user(lines, sizeof(walking->scratch->lines), (void *)(words[code_word(136)] + 16));
	return mix(mix(mix(id, lines[0]), lines[2]), lines[3]);
}

// One frame towards the outermost. Returns 1 at the end.
static long walk_frame(u32 index, struct walking *walking)
{
	struct scratch_python *scratch = walking->scratch;
	u64 *words = scratch->frame;
	u32 number = scratch->number;
	bool is_11 = walking->python->version == 311;

	scratch->flags = PYTHON_CUT;
	if (number >= PYTHON_FRAMES || bpf_probe_read_user(words, sizeof(scratch->frame), (void *)walking->frame))
		return 1;
	u64 code = is_11 ? words[4] : words[0], previous = is_11 ? words[6] : words[1];
	bool is_entry = is_11 && words[8] >> 32 & 0xff;
	walking->frame = previous;
	if (!is_11 && (words[8] >> 48 & 0xff) == OWNED_BY_C_STACK) {
		// Not a frame, but the mark of the call of the evaluation loop for the previous
		// one.
		if (number)
			scratch->frames[at_most(number - 1, PYTHON_FRAMES - 1)].entry = 1;
	} else {
		if (bpf_probe_read_user(scratch->code, sizeof(scratch->code), (void *)(code + 8)) ||
		    scratch->code[0] != walking->python->code_type)
			return 1;
		u64 id = id_of_code(walking, code);
		u64 place = at_most(number, PYTHON_FRAMES - 1);
		struct python_frame *frame = &scratch->frames[place];
		scratch->codes[place] = code;
		frame->code = id;
		frame->at = words[7] - code;
		frame->entry = is_entry;
		walking->h = mix(mix(walking->h, id), frame->at);
		scratch->number = number + 1;
	}
	if (previous)
		return 0;
	scratch->flags = 0;
	return 1;
}

// The fingerprint of the frames of the running thread, combined with that of its stack, `h`. The
// frames stay in the scratch.
static __always_inline u64 mix_python(struct task_struct *task, struct layout *layout, struct scratch_python *scratch, u64 h)
{
	struct python *python = &layout->python;
	struct walking walking = { .python = python, .scratch = scratch, .h = h };

	if (!find_thread(task, python, scratch))
		return h;
	walking.frame = scratch->thread[0];
	// 3.11 and 3.12: one more indirection, to a structure on the C stack that has the frame
	// first or after another word.
	if (python->version < 313 && read_user(walking.frame, walking.frame + (python->version == 311 ? 8 : 0)))
		return h;
	walking.process = mix(task->tgid, python->runtime ^ config.secret);
	if (walking.frame)
		bpf_loop(2 * PYTHON_FRAMES + 2, walk_frame, &walking, 0);
	return walking.h;
}

// `words` is a buffer for the head of a string.
static __always_inline void read_text(struct python_text *text, u64 *words, u64 object, u32 version)
{
	// All zeros if it cannot be read.
	bpf_probe_read_user(words, TEXT_WORDS * sizeof(*words), (void *)object);
	text->length = words[2];
	text->state = words[4];
	u32 kind = text->state >> 2 & 7, bytes = PYTHON_NAME_BYTES;
	// The characters follow the head, which is longer for text that is not ASCII.
	u64 head = text->state & 64 ? 40 : 56;
	if (version == 311)
		head += text->state & 64 ? 8 : 16;
	if ((u64)text->length * kind < bytes)
		bytes = text->length * kind;
	if (bpf_probe_read_user(text->bytes, at_most(bytes, PYTHON_NAME_BYTES), (void *)(object + head)))
		text->length = 0;
}

// Report a code object; returns 0 if the event was lost.
__noinline int report_code(u64 code, u64 id, u32 version, u64 now_ns)
{
	u32 zero = 0;
	struct scratch_python *scratch = bpf_map_lookup_elem(&scratch_pythons, &zero);
	struct ring *ring = this_ring();
	u64 position, lines_bytes = 0;

	if (!ring || !scratch || read_user(scratch->code, code + 8))
		return 0;
	u64 *words = scratch->code, lines = words[code_word(136)];
	read_user(lines_bytes, lines + 16);
	u32 bytes = lines_bytes > PYTHON_LINES_BYTES ? PYTHON_LINES_BYTES : lines_bytes;
	u32 size = (sizeof(struct python_code_event) + bytes + 7) & ~7u;
	struct python_code_event *event = ring_take(ring, size, EVENT_PYTHON_CODE, now_ns, &position);
	if (!event)
		return 0;
	event->id = id;
	event->first_line = version == 311 ? words[code_word(72)] : words[code_word(64)] >> 32;
	event->first_instruction = version == 311 ? 184 : version == 312 ? 192 : 200;
	read_text(&event->file, scratch->text, words[code_word(112)], version);
	read_text(&event->name, scratch->text, words[code_word(128)], version);
	event->lines_bytes = lines_bytes;
	if (bpf_probe_read_user(event->lines, at_most(bytes, PYTHON_LINES_BYTES), (void *)(lines + 32)))
		event->lines_bytes = 0;
	ring_give(&event->header, position, size, EVENT_PYTHON_CODE, 0);
	return 1;
}

struct reporting {
	struct scratch_python *scratch;
	struct reported_codes *reported;
	u64 now_ns;
	u32 version;
};

static long report_frame(u32 index, struct reporting *reporting)
{
	if (index >= PYTHON_FRAMES || index >= reporting->scratch->number)
		return 1;
	index = at_most(index, PYTHON_FRAMES - 1);
	u64 id = reporting->scratch->frames[index].code;
	u64 *place = &reporting->reported->ids[id >> 40 & (REPORTED_CODES - 1)];
	if (*place != id && report_code(reporting->scratch->codes[at_most(index, PYTHON_FRAMES - 1)], id, reporting->version, reporting->now_ns))
		*place = id;
	return 0;
}

// Report the frames in the scratch, for the stack with this id. Returns 0 if they were lost.
static __always_inline bool tell_python(
	struct scratch_python *scratch, struct layout *layout, u64 id, u32 tid, u64 now_ns, u32 flags)
{
	u32 zero = 0, number = scratch->number;
	struct reporting reporting = { .scratch = scratch, .now_ns = now_ns, .version = layout->python.version };
	struct ring *ring = this_ring();
	u64 position;

	reporting.reported = bpf_map_lookup_elem(&reported_codes, &zero);
	if (!ring || !reporting.reported)
		return 0;
	if (!number)
		return 1;
	bpf_loop(PYTHON_FRAMES, report_frame, &reporting, 0);
	if (number > PYTHON_FRAMES)
		number = PYTHON_FRAMES;
	u32 bytes = number * sizeof(struct python_frame), size = sizeof(struct python_event) - sizeof(scratch->frames) + bytes;
	struct python_event *event = ring_take(ring, size, EVENT_PYTHON, now_ns, &position);
	if (!event)
		return 0;
	event->at_ns = now_ns;
	event->id = id;
	event->tid = tid;
	event->number = number;
	bpf_probe_read_kernel(event->frames, at_most(bytes, sizeof(scratch->frames)), scratch->frames);
	ring_give(&event->header, position, size, EVENT_PYTHON, scratch->flags | (flags & STACK_OF_SAMPLE ? PYTHON_OF_SAMPLE : 0));
	return 1;
}
