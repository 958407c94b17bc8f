// Finds a Python interpreter's list of threads in the memory of a process.
//
// Symbols of the binary are looked up in the tables of the loader, in memory: this needs no
// permission to read files, and functions have names from the start.
//
// A page that the program has not accessed cannot be read here. Then the search is repeated at the
// 2nd, 4th, 8th, ... stack.
#pragma once

#include "layouts.h"
#include <bpf/bpf_helpers.h>

#define ELF_MAGIC 0x464c457f
#define PT_LOAD 1
#define PT_DYNAMIC 2
#define DT_SYMTAB 6
#define DT_GNU_HASH 0x6ffffef5
#define MOST_SEGMENTS 16
#define MOST_DYNAMIC 64
#define LONGEST_CHAIN 64

// Results that are not addresses.
#define ABSENT 0
#define UNREADABLE 1

// The tables in which the loader looks up symbols.
struct symbols {
	u64 bias, table, buckets, chain;
	u32 number, first;
};

// The used fields of the beginning of _PyRuntime from 3.13 on (struct _Py_DebugOffsets).
struct debug_offsets {
	u64 cookie, version, free_threaded;
	u64 runtime_size, finalizing, interpreters_head;
	u64 interpreter_size, id, next_interpreter, threads_head, others[9];
	u64 thread_size, previous, next_thread, interpreter, current_frame, thread_id, native_thread_id, datastack_chunk, status;
	u64 frame_size, frame_previous, executable, instruction, localsplus, owner;
	u64 code_size, filename, name, qualname, lines, first_line, arguments, names, kinds, code;
};

// Memory for the search. Not on the stack: older kernels, such as 6.1, limit it to 512 bytes for a
// chain of functions.
struct seeking {
	struct symbols symbols;
	u64 header[8], segment[7], entry[3];
	u32 hashes[4];
	struct debug_offsets offsets;
	// State of the loops, which are calls of bpf_loop: the verifier would follow each iteration
	// of an ordinary loop, which takes long.
	u64 at;     // address of the first entry
	u64 found;  // result so far
	u64 hash_table;
	u32 wanted; // hash that is searched for
	u32 index;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct seeking);
} scratch_seeking SEC(".maps");

#define read_user(to, from) bpf_probe_read_user(&(to), sizeof(to), (void *)(from))

// The hash of a name, as in DT_GNU_HASH. For a literal, the compiler computes it.
static __always_inline u32 hash_of(const char *name, u32 length)
{
	u32 hash = 5381;

#pragma unroll
	for (u32 i = 0; i < 32; i++)
		if (i < length)
			hash = hash * 33 + (u8)name[i];
	return hash;
}

#define symbol(seeking, name) address_of(seeking, hash_of(name, sizeof(name) - 1))

static long look_at_segment(u32 index, struct seeking **one)
{
	struct seeking *seeking = *one;
	u64 *segment = seeking->segment;

	if (read_user(seeking->segment, seeking->at + index * sizeof(seeking->segment))) {
		seeking->found = UNREADABLE;
		return 1;
	}
	// offset and address
	if ((u32)segment[0] == PT_LOAD && !segment[1])
		seeking->symbols.bias -= segment[2];
	if ((u32)segment[0] == PT_DYNAMIC)
		seeking->found = segment[2];
	return 0;
}

// The address of the dynamic table; also sets the difference between addresses in memory and those
// in the file.
__noinline u64 dynamic_of(struct seeking *seeking, u64 header)
{
	if (!seeking || read_user(seeking->header, header))
		return UNREADABLE;
	seeking->at = header + seeking->header[4];
	seeking->found = ABSENT;
	u32 segments = (u16)seeking->header[7];
	if ((u32)seeking->header[0] != ELF_MAGIC)
		return ABSENT;
	seeking->symbols.bias = header;
	bpf_loop(segments < MOST_SEGMENTS ? segments : MOST_SEGMENTS, look_at_segment, &seeking, 0);
	if (seeking->found == ABSENT || seeking->found == UNREADABLE)
		return seeking->found;
	return seeking->found + seeking->symbols.bias;
}

static long look_at_dynamic(u32 index, struct seeking **one)
{
	struct seeking *seeking = *one;
	u64 *entry = seeking->entry, bias = seeking->symbols.bias;

	if (bpf_probe_read_user(entry, 16, (void *)(seeking->at + index * 16ULL))) {
		seeking->found = UNREADABLE;
		return 1;
	}
	if (!entry[0])
		return 1;
	// The loader of glibc converts these offsets to addresses, that of musl does not.
	u64 address = entry[1] < bias ? entry[1] + bias : entry[1];
	if (entry[0] == DT_SYMTAB)
		seeking->found = address;
	if (entry[0] == DT_GNU_HASH)
		seeking->hash_table = address;
	return 0;
}

// Find the tables. Returns ABSENT, UNREADABLE, or another value if they are found.
__noinline u64 find_symbols(struct seeking *seeking, u64 header)
{
	if (!seeking)
		return ABSENT;
	struct symbols *symbols = &seeking->symbols;
	seeking->at = dynamic_of(seeking, header);
	seeking->found = seeking->hash_table = 0;
	if (seeking->at == ABSENT || seeking->at == UNREADABLE)
		return seeking->at;
	bpf_loop(MOST_DYNAMIC, look_at_dynamic, &seeking, 0);
	if (seeking->found == UNREADABLE)
		return UNREADABLE;
	if (!seeking->found || !seeking->hash_table)
		return ABSENT;
	if (read_user(seeking->hashes, seeking->hash_table))
		return UNREADABLE;
	symbols->table = seeking->found;
	symbols->number = seeking->hashes[0];
	symbols->first = seeking->hashes[1];
	symbols->buckets = seeking->hash_table + sizeof(seeking->hashes) + 8ULL * seeking->hashes[2];
	symbols->chain = symbols->buckets + 4ULL * symbols->number;
	return seeking->found;
}

static long look_at_chain(u32 step, struct seeking **one)
{
	struct seeking *seeking = *one;
	struct symbols *symbols = &seeking->symbols;
	u32 index = seeking->index + step, found;

	if (read_user(found, symbols->chain + 4ULL * (index - symbols->first))) {
		seeking->found = UNREADABLE;
		return 1;
	}
	if ((found | 1) == (seeking->wanted | 1)) {
		seeking->found = symbols->table + sizeof(seeking->entry) * index;
		return 1;
	}
	return found & 1;
}

// The address of a symbol. Other symbols with the same hash are not excluded: the caller verifies
// the result.
__noinline u64 address_of(struct seeking *seeking, u32 hash)
{
	if (!seeking || !seeking->symbols.number)
		return ABSENT;
	struct symbols *symbols = &seeking->symbols;
	seeking->wanted = hash;
	seeking->found = ABSENT;
	if (read_user(seeking->index, symbols->buckets + 4ULL * (hash % symbols->number)))
		return UNREADABLE;
	if (seeking->index < symbols->first)
		return ABSENT;
	bpf_loop(LONGEST_CHAIN, look_at_chain, &seeking, 0);
	if (seeking->found == ABSENT || seeking->found == UNREADABLE)
		return seeking->found;
	return read_user(seeking->entry, seeking->found) ? UNREADABLE : symbols->bias + seeking->entry[1];
}

#define COOKIE 0x7970677562656478ULL // "xdebugpy"

// 3.13 and newer. Returns whether the structures are those that `python.h` reads.
static __always_inline bool use_offsets(struct python *python, struct debug_offsets *offsets)
{
	python->interpreters = offsets->interpreters_head;
	python->next_interpreter = offsets->next_interpreter;
	python->threads = offsets->threads_head;
	python->next_thread = offsets->next_thread;
	python->thread_id = offsets->thread_id;
	python->frame = offsets->current_frame;
	python->version = 313;
	return !offsets->free_threaded && (offsets->version >> 16) == 0x030d && offsets->executable == 0 &&
	       offsets->frame_previous == 8 && offsets->instruction == 56 && offsets->owner == 70 && offsets->filename == 112 &&
	       offsets->qualname == 128 && offsets->lines == 136 && offsets->first_line == 68 && offsets->code == 200;
}

// 3.11 and 3.12 do not state the offsets: these are from their headers.
static __always_inline void use_known(struct python *python, bool is_12)
{
	python->interpreters = 40;
	python->next_interpreter = 0;
	python->threads = is_12 ? 72 : 16;
	python->next_thread = 8;
	python->thread_id = is_12 ? 136 : 152;
	python->frame = 56; // offset in the thread of cframe, which leads to the frame
	python->version = is_12 ? 312 : 311;
}

// Find the interpreter of a process. Returns UNREADABLE, ABSENT or the address of its runtime.
static __always_inline u64 look_for_python(struct python *python, struct seeking *seeking)
{
	u64 found = find_symbols(seeking, python->header);
	if (found == ABSENT || found == UNREADABLE)
		return found;
	u64 runtime = symbol(seeking, "_PyRuntime");
	if (runtime == ABSENT || runtime == UNREADABLE)
		return runtime;
	python->runtime = runtime;
	python->code_type = symbol(seeking, "PyCode_Type");
	u64 in_11 = symbol(seeking, "PyFrame_GetLasti"), in_12 = symbol(seeking, "PyErr_GetRaisedException");
	if (python->code_type == UNREADABLE || in_11 == UNREADABLE || in_12 == UNREADABLE || read_user(seeking->offsets, runtime))
		return UNREADABLE;
	if (seeking->offsets.cookie == COOKIE)
		return use_offsets(python, &seeking->offsets) ? runtime : ABSENT;
	use_known(python, in_12 != ABSENT);
	return in_11 == ABSENT ? ABSENT : runtime;
}

__noinline int seek_python(struct layout *layout)
{
	u32 zero = 0;
	struct seeking *seeking = bpf_map_lookup_elem(&scratch_seeking, &zero);

	if (!layout || !seeking)
		return 0;
	u32 tries = ++layout->python.tries;
	if (tries & (tries - 1))
		return 0;
	u64 found = look_for_python(&layout->python, seeking);
	if (found != UNREADABLE)
		layout->python.state = found == ABSENT ? PYTHON_NONE : PYTHON_FOUND;
	return 0;
}
