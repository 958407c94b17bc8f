// Where in a program a call was made. At the return of a call, the words on top of the user's stack that point to code, and the place of
// the call, are hashed: the *fingerprint* is the id of the stack. The first time, registers and the stack itself are copied; the user
// side finds the frames in the copy by the tables that compilers leave for exceptions. Once in a while a known stack is copied again, so
// that it can be said how often two stacks had the same id.
#pragma once

#include "layouts.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

// Words of the stack that are looked at, and bytes that are copied.
#define STACK_WORDS 256
#define PAGE 4096ULL
#define STACK_PAGES 9
#define KNOWN_STACKS 65536
#define KNOWN_PLACES 4
// Of so many calls with known stacks one has its stack copied again.
#define CHECKED_ONCE_IN 4096

struct known_stacks {
	u64 ids[KNOWN_STACKS]; // in groups of KNOWN_PLACES
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct known_stacks);
} known_stacks SEC(".maps");

struct scratch_stack {
	u64 words[STACK_WORDS];
	u64 known;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch_stack);
} scratch_stacks SEC(".maps");

struct copying {
	struct ring *ring;
	struct pt_regs *regs;
	u64 id, image, now_ns, sp, end;
	u32 tid, flags;
	bool lost;
};

// Copies a page, each as an event of its own: an event must be shorter than the slack of a ring. Returns 1 at the end.
static long copy_page(u32 index, struct copying *copying)
{
	u64 start = index ? (copying->sp & ~(PAGE - 1)) + index * PAGE : copying->sp;
	u64 end = (start & ~(PAGE - 1)) + PAGE, position, word;
	struct stack_event *event;

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
	event = ring_take(copying->ring, size, EVENT_STACK, copying->now_ns, &position);
	if (!event) {
		copying->lost = 1;
		return 1;
	}
	event->at_ns = copying->now_ns;
	event->id = copying->id;
	event->image = copying->image;
	event->tid = copying->tid;
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

static __always_inline bool copy_stack(struct task_struct *task, struct pt_regs *regs, u64 id, u64 image, u64 now_ns, u32 flags)
{
	struct copying copying = {
		.ring = this_ring(), .regs = regs, .id = id, .image = image, .now_ns = now_ns, .flags = flags };
	u64 bottom = task->mm->start_stack & ~7ULL;

	if (!copying.ring)
		return 0;
	copying.tid = task->pid;
	copying.sp = regs->sp & ~7ULL;
	copying.end = ~7ULL;
	// What lies behind the first frame of a process is its arguments and environment.
	if (copying.sp < bottom && bottom - copying.sp < STACK_PAGES * PAGE)
		copying.end = bottom + 64;
	bpf_loop(STACK_PAGES, copy_page, &copying, 0);
	return !copying.lost;
}

// Words on top of the stack, into the scratch; returns their number.
static __always_inline u32 read_words(struct scratch_stack *scratch, u64 sp)
{
	if (!bpf_probe_read_user(scratch->words, sizeof(scratch->words), (void *)sp))
		return STACK_WORDS;
	// The stack ends before; the page of its top is there.
	u64 bytes = (PAGE - (sp & (PAGE - 1))) & ~7ULL;
	if (bytes > sizeof(scratch->words))
		bytes = sizeof(scratch->words);
	return bpf_probe_read_user(scratch->words, bytes, (void *)sp) ? 0 : bytes / 8;
}

// The id of the stack of the running thread; 0: it has none.
__noinline u64 stack_of(u64 now_ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u32 zero = 0;
	struct scratch_stack *scratch = bpf_map_lookup_elem(&scratch_stacks, &zero);
	struct known_stacks *known = bpf_map_lookup_elem(&known_stacks, &zero);
	struct layout *layout = layout_of(task->tgid, 0);

	if (!scratch || !known || !layout)
		return 0;
	u64 image = layout->image, h = mix(image, regs->ip);
	u32 number = read_words(scratch, regs->sp & ~7ULL);
	for (u32 i = 0; i < STACK_WORDS; i++) {
		if (i >= number)
			break;
		u64 word = scratch->words[i];
		if (is_text(layout, word))
			h = mix(h, word);
	}
	u64 id = h | 1;
	u64 *places = &known->ids[h >> 40 & (KNOWN_STACKS - KNOWN_PLACES)];
	if (places[0] == id || places[1] == id || places[2] == id || places[3] == id) {
		if (++scratch->known % CHECKED_ONCE_IN == 0)
			copy_stack(task, regs, id, image, now_ns, STACK_AGAIN);
		return id;
	}
	if (copy_stack(task, regs, id, image, now_ns, 0))
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
