// Stacks of calls and of samples.
//
// Words of the user's stack that point to code, and the address of the call, are hashed: this
// *fingerprint* is the id of the stack. The first time, the registers and the stack itself are
// copied; the user side unwinds the copy with the tables that compilers write for exceptions. Once
// in a while a known stack is copied again, to measure how often two stacks had the same id.
//
// All words at the top of the stack are checked. Further up, beyond buffers that functions may have
// there, are more words than can be checked each time: when a top is seen for the first time, the
// positions of words that point to code are *learned*; from then on these are checked too.
//
// The including program defines STACKS_WANTED, whether it calls stack_of, and STACKS_OFTEN, whether
// it calls it so often that speed is more important than the time to load the programs.
#pragma once

#include "python.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

// Number of words at the top of the stack that are checked, and of positions further up that are
// learned.
#define TOP_WORDS 64
#define MOST_PLACES 15
#define LEARNED_TOPS 16384
// Number of pages that are learned from and copied.
#define PAGE 4096ULL
#define STACK_PAGES 9
#define KNOWN_STACKS 65536
#define KNOWN_PLACES 4
// One in this many calls with known stacks has its stack copied again.
#define CHECKED_ONCE_IN 4096

struct known_stacks {
	u64 ids[KNOWN_STACKS]; // in groups of KNOWN_PLACES
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE); // as `reported`
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, sizeof(struct known_stacks)); // set before loading
} known_stacks SEC(".maps");

struct learned_top {
	u64 top; // fingerprint of the words at the top
	u16 number;
	u16 places[MOST_PLACES]; // in words from the top
};

struct learned_tops {
	struct learned_top tops[LEARNED_TOPS]; // in groups of KNOWN_PLACES
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, sizeof(struct learned_tops)); // set before loading
} learned_tops SEC(".maps");

struct scratch_stack {
	u64 words[TOP_WORDS];
	u64 known;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch_stack);
} scratch_stacks SEC(".maps");

struct copying { // on the stack, where room is scarce
	struct pt_regs *regs;
	u64 id, image, now_ns, sp, end;
	u32 flags;
	bool lost;
};

// Copy a page, as a separate event: an event must be shorter than the slack of a ring. Returns 1 at
// the end.
static long copy_page(u32 index, struct copying *copying)
{
	u64 start = index ? (copying->sp & ~(PAGE - 1)) + index * PAGE : copying->sp;
	u64 end = (start & ~(PAGE - 1)) + PAGE, position, word;
	struct ring *ring = this_ring();
	struct stack_event *event;

	if (!ring)
		return 1;
	if (end > copying->end)
		end = copying->end;
	u64 bytes = start < end ? end - start : 0;
	if (bpf_probe_read_user(&word, sizeof(word), (void *)start))
		bytes = 0;
	if (index && !bytes)
		return 1;
	if (bytes > PAGE)
		bytes = PAGE;
	u32 size = sizeof(*event) + bytes;
	event = ring_take(ring, size, EVENT_STACK, copying->now_ns, &position);
	if (!event) {
		copying->lost = 1;
		return 1;
	}
	event->at_ns = copying->now_ns;
	event->id = copying->id;
	event->image = copying->image;
	event->tid = tid_of(bpf_get_current_task_btf());
	event->offset = start - copying->sp;
	struct pt_regs *regs = copying->regs;
	event->ip = BPF_CORE_READ(regs, ip);
	event->sp = copying->sp;
	event->bp = BPF_CORE_READ(regs, bp);
	event->bx = BPF_CORE_READ(regs, bx);
	event->r12 = BPF_CORE_READ(regs, r12);
	event->r13 = BPF_CORE_READ(regs, r13);
	event->r14 = BPF_CORE_READ(regs, r14);
	event->r15 = BPF_CORE_READ(regs, r15);
	bpf_probe_read_user(event->bytes, bytes, (void *)start);
	ring_give(&event->header, position, size, EVENT_STACK, copying->flags);
	return !bytes;
}

// The end of the readable part of a stack.
static __always_inline u64 end_of_stack(struct task_struct *task, u64 sp)
{
	u64 bottom = task->mm->start_stack & ~7ULL;

	// Arguments and environment follow the first frame of a process.
	return sp < bottom && bottom - sp < STACK_PAGES * PAGE ? bottom + 64 : ~7ULL;
}

static __always_inline bool copy_stack(
	struct task_struct *task, struct pt_regs *regs, struct layout *layout, u64 id, u64 end, u64 now_ns, u32 flags)
{
	struct copying copying = {
		.regs = regs, .id = id, .image = layout->image, .end = end, .now_ns = now_ns, .flags = flags };
	u32 zero = 0;

	copying.sp = regs->sp & ~7ULL;
	if (layout->python.state == PYTHON_FOUND) {
		struct scratch_python *python = bpf_map_lookup_elem(&scratch_pythons, &zero);
		// Half of it would be another stack.
		if (!python || !tell_python(python, layout, id, tid_of(task), now_ns, flags))
			return 0;
	}
	bpf_loop(STACK_PAGES, copy_page, &copying, 0);
	return !copying.lost;
}

// Read words from an address on to the scratch; returns their number.
static __always_inline u32 read_words(struct scratch_stack *scratch, u64 address)
{
	if (!bpf_probe_read_user(scratch->words, sizeof(scratch->words), (void *)address))
		return TOP_WORDS;
	// The stack may end before.
	u64 bytes = (PAGE - (address & (PAGE - 1))) & ~7ULL;
	if (bytes > sizeof(scratch->words))
		bytes = sizeof(scratch->words);
	return bpf_probe_read_user(scratch->words, bytes, (void *)address) ? 0 : bytes / 8;
}

struct learning {
	struct scratch_stack *scratch;
	struct layout *layout;
	struct learned_top *top;
	u64 sp, end;
	u32 from; // index of the first of the words that are checked
};

// Whether a call instruction precedes an address, in any of its usual forms: E8, or FF with 2 in
// the middle of the next byte.
static __always_inline bool is_return_address(u64 address)
{
	u64 code = 0;

	if (bpf_probe_read_user(&code, sizeof(code), (void *)(address - 8)))
		return 1;
	return (code >> 24 & 0xff) == 0xe8 || (code >> 48 & 0x38ff) == 0x10ff || (code >> 40 & 0x38ff) == 0x10ff ||
	       (code >> 16 & 0x38ff) == 0x10ff || (code >> 8 & 0x38ff) == 0x10ff;
}

static long learn_word(u32 index, struct learning *learning)
{
	struct learned_top *top = learning->top;

	if (index >= TOP_WORDS)
		return 1;
	u64 word = learning->scratch->words[index];
	// The number stays in memory, where the verifier does not track its values.
	u32 found = *(volatile u16 *)&top->number;
	if (found < MOST_PLACES && is_text(learning->layout, word) && is_return_address(word)) {
		top->places[found] = learning->from + index;
		*(volatile u16 *)&top->number = found + 1;
	}
	return 0;
}

// Learn the positions of code addresses in the next words. Returns 1 at the end.
static long learn_words(u32 index, struct learning *learning)
{
	learning->from = (index + 1) * TOP_WORDS;
	u64 address = learning->sp + learning->from * 8ULL;
	u32 number = address < learning->end ? read_words(learning->scratch, address) : 0;

	// One by one in a helper: the verifier takes long for each loop that it has to follow.
	bpf_loop(number, learn_word, learning, 0);
	return number < TOP_WORDS;
}

struct further {
	struct learned_top *top;
	struct layout *layout;
	u64 sp, h;
};

static long mix_place(u32 index, struct further *further)
{
	u64 word = 0;

	if (index >= MOST_PLACES)
		return 1;
	bpf_probe_read_user(&word, sizeof(word), (void *)(further->sp + further->top->places[index] * 8ULL));
	further->h = mix(further->h, is_text(further->layout, word) ? word : 0);
	return 0;
}

// The fingerprint of the words after those at the top; `h` is the fingerprint of the top.
static __always_inline u64 mix_further(struct scratch_stack *scratch, struct layout *layout, u64 sp, u64 end, u64 h, u64 now_ns)
{
	u32 zero = 0;
	struct learned_tops *all = bpf_map_lookup_elem(&learned_tops, &zero);

	if (!all)
		return h;
	struct learned_top *group = &all->tops[h >> 24 & (LEARNED_TOPS - KNOWN_PLACES)];
	struct further further = { .layout = layout, .sp = sp, .h = h };
	if (group[0].top == h)
		further.top = group;
	else if (group[1].top == h)
		further.top = group + 1;
	else if (group[2].top == h)
		further.top = group + 2;
	else if (group[3].top == h)
		further.top = group + 3;
	else {
		further.top = group + (now_ns / 64 & (KNOWN_PLACES - 1));
		struct learning learning = { .scratch = scratch, .layout = layout, .top = further.top, .sp = sp, .end = end };
		further.top->number = 0;
		bpf_loop(STACK_PAGES * PAGE / 8 / TOP_WORDS, learn_words, &learning, 0);
		further.top->top = h;
	}
	if (further.top->number)
		bpf_loop(further.top->number, mix_place, &further, 0);
	return further.h;
}

// The fingerprint combined with that of functions of Python, if there are any.
static __always_inline u64 with_python(struct task_struct *task, struct layout *layout, u64 h)
{
	u32 zero = 0;
	struct scratch_python *python = bpf_map_lookup_elem(&scratch_pythons, &zero);

	if (layout->python.state == PYTHON_SOUGHT)
		seek_python(layout);
	if (!python)
		return h;
	python->number = python->flags = 0;
	return layout->python.state == PYTHON_FOUND ? mix_python(task, layout, python, h) : h;
}

struct looking {
	struct scratch_stack *scratch;
	struct layout *layout;
	u64 h;
};

static long look_at_word(u32 index, struct looking *looking)
{
	if (index >= TOP_WORDS)
		return 1;
	u64 word = looking->scratch->words[index];
	if (is_text(looking->layout, word))
		looking->h = mix(looking->h, word);
	return 0;
}

// The fingerprint of the words at the top.
static __always_inline u64 mix_top(struct scratch_stack *scratch, struct layout *layout, u32 number, u64 h)
{
	if (!STACKS_OFTEN) {
		struct looking looking = { scratch, layout, h };
		bpf_loop(number, look_at_word, &looking, 0);
		return looking.h;
	}
	// Faster, but slow to load.
	for (u32 i = 0; i < TOP_WORDS; i++) {
		if (i >= number)
			break;
		u64 word = scratch->words[i];
		if (is_text(layout, word))
			h = mix(h, word);
	}
	return h;
}

// The id of the stack of the running thread; 0: it has none. `flags`: STACK_OF_SAMPLE.
__noinline u64 stack_of(u64 now_ns, u32 flags)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u32 zero = 0;

	// Older verifiers, such as that of 6.1, also check the function if nothing calls it and its
	// maps are small.
	if (!STACKS_WANTED)
		return 0;
	struct scratch_stack *scratch = bpf_map_lookup_elem(&scratch_stacks, &zero);
	struct known_stacks *known = bpf_map_lookup_elem(&known_stacks, &zero);
	struct layout *layout = layout_of(pid_of(task), 0);

	if (!scratch || !known || !layout)
		return 0;
	flags &= STACK_OF_SAMPLE;
	if ((s64)regs->orig_ax < 0)
		flags |= STACK_INTERRUPTED;
	u64 sp = regs->sp & ~7ULL, end = end_of_stack(task, sp);
	u64 h = mix(mix(layout->image, regs->ip), sp);
	h = mix_top(scratch, layout, read_words(scratch, sp), h);
	h = mix_further(scratch, layout, sp, end, h, now_ns);
	if (layout->python.state)
		h = with_python(task, layout, h);
	u64 id = h | 1;
	u64 *places = &known->ids[h >> 40 & (KNOWN_STACKS - KNOWN_PLACES)];
	if (places[0] == id || places[1] == id || places[2] == id || places[3] == id) {
		if (++scratch->known % CHECKED_ONCE_IN == 0)
			copy_stack(task, regs, layout, id, end, now_ns, flags | STACK_AGAIN);
		return id;
	}
	if (copy_stack(task, regs, layout, id, end, now_ns, flags))
		places[now_ns / 64 & (KNOWN_PLACES - 1)] = id;
	return id;
}

static __always_inline bool wants_stack(u64 duration_ns, u64 *calls)
{
	if (config.stacks == STACKS_SLOWER)
		return duration_ns > config.stacks_slower_ns;
	if (config.stacks == STACKS_EVERY)
		return ++*calls % (config.stacks_every ?: 1) == 0;
	return 1;
}
