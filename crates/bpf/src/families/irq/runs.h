// The nesting of interrupts on a CPU.
//
// A softirq may be interrupted by a device or by another CPU, and timers expire in both. A handler
// is not interrupted by one of its own level, so each CPU has one slot for each level. The time of
// a handler is subtracted from the handler on the level below that it interrupted.
#pragma once

#include "bpf/kernel.h"
#include <bpf/bpf_helpers.h>

enum level { LEVEL_SOFT, LEVEL_SOFT_TIMER, LEVEL_HARD, LEVEL_HARD_TIMER, LEVELS };

#define SOFTIRQS 16 // there are 10
#define NOT_KNOWN (-1ll)

// A running handler.
struct run {
	u64 begin_ns;
	u64 inner_ns;
	s64 delay_ns;
	u64 slack_ns, function; // for a timer, which may be freed at the end
	u32 woken_tid;
	u32 pad;
};

struct runs {
	u64 raised_ns[SOFTIRQS]; // time at which each pending softirq was raised; 0: not pending
	struct run of[LEVELS];
	u32 under_way; // active levels, as bits
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct runs);
} runs SEC(".maps");

static __always_inline struct runs *this_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&runs, &zero);
}

// The handler on the next lower active level; NULL: none. With LEVELS: the innermost handler.
static __always_inline struct run *running_below(struct runs *here, u32 level)
{
	if (level > LEVEL_HARD_TIMER && here->under_way >> LEVEL_HARD_TIMER & 1)
		return &here->of[LEVEL_HARD_TIMER];
	if (level > LEVEL_HARD && here->under_way >> LEVEL_HARD & 1)
		return &here->of[LEVEL_HARD];
	if (level > LEVEL_SOFT_TIMER && here->under_way >> LEVEL_SOFT_TIMER & 1)
		return &here->of[LEVEL_SOFT_TIMER];
	return here->under_way >> LEVEL_SOFT & 1 && level > LEVEL_SOFT ? &here->of[LEVEL_SOFT] : 0;
}

// Begin a handler. Handlers on higher levels have ended, even if their end was not seen.
static __always_inline struct run *begin_run(struct runs *here, u32 level)
{
	struct run *run = &here->of[level];

	here->under_way = (here->under_way & ((1u << level) - 1)) | 1u << level;
	run->delay_ns = NOT_KNOWN;
	run->woken_tid = 0;
	run->inner_ns = 0;
	run->begin_ns = bpf_ktime_get_ns();
	return run;
}

// End a handler; NULL: its begin was not seen.
static __always_inline struct run *end_run(struct runs *here, u32 level, u64 now_ns)
{
	struct run *run = &here->of[level], *outer;

	if (!(here->under_way >> level & 1))
		return 0;
	here->under_way &= (1u << level) - 1;
	outer = running_below(here, level);
	if (outer)
		outer->inner_ns += now_ns - run->begin_ns;
	return run;
}
