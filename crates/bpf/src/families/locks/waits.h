// Waits for locks of the kernel, assembled from the events of their beginnings and ends.
//
// The including program defines `keep_wait`, which is called at the end of each wait. The stack and
// the holder of the lock are read when a wait begins: this costs nothing while the lock is held.
#pragma once

#include "bpf/kernel.h"
#include "bpf/target.h"
#include "events.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define FRAMES 16
#define TRACEPOINT_FRAMES 3 // frames of the program itself and its callers

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	s64 counter;
} atomic_long_t;

struct mutex {
	atomic_long_t owner;
};

struct rw_semaphore {
	atomic_long_t owner;
};

#pragma clang attribute pop

struct lock_wait {
	u64 lock;
	u64 from_ns;
	u32 flags; // flags of the tracepoint
	u32 bytes; // size of the frames
	u64 holder; // address of its task
	u64 frames[FRAMES];
};

// Called when a wait has ended. `flags`: lock_wait_flag.
static __always_inline void keep_wait(struct task_struct *task, struct lock_wait *wait, u32 flags);

// Called for a wait whose beginning or end cannot be followed.
static __always_inline void lose_wait(void);

// A spinning task stays on its CPU: its waits, and those of interrupts meanwhile, end in the
// reverse order of their beginnings.
#define MOST_SPINNING 4

struct spinning {
	u32 depth;
	u32 pad;
	struct lock_wait waits[MOST_SPINNING];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct spinning);
} spinning SEC(".maps");

// Sleeping tasks by address. Each one waits for one lock at a time.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct lock_wait);
} sleeping SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct lock_wait);
} new_waits SEC(".maps");

static __always_inline bool only_spins(u32 flags)
{
	return flags & LOCK_SPIN && !(flags & LOCK_MUTEX);
}

// The task that holds a mutex or rwsem; other locks do not store it. 0 if several readers hold it.
static __always_inline u64 holder_of(u64 lock, u32 flags)
{
	u64 owner = 0;

	if (flags & LOCK_MUTEX)
		bpf_probe_read_kernel(&owner, sizeof(owner), (void *)lock + bpf_core_field_offset(struct mutex, owner));
	else if (flags & (LOCK_READ | LOCK_WRITE) && !(flags & (LOCK_SPIN | LOCK_PERCPU | LOCK_RT)))
		bpf_probe_read_kernel(&owner, sizeof(owner), (void *)lock + bpf_core_field_offset(struct rw_semaphore, owner));
	else
		return 0;
	// The lowest bits are flags; in an rwsem the lowest one means that readers hold it.
	return flags & LOCK_MUTEX || !(owner & 1) ? owner & ~7ull : 0;
}

static __always_inline void note_wait(void *context, struct lock_wait *wait, u64 lock, u32 flags)
{
	long bytes = bpf_get_stack(context, wait->frames, sizeof(wait->frames), TRACEPOINT_FRAMES);

	wait->lock = lock;
	wait->flags = flags;
	wait->bytes = bytes > 0 ? bytes : 0;
	wait->holder = holder_of(lock, flags);
	// The time until now is not part of the wait.
	wait->from_ns = bpf_ktime_get_ns();
}

static __always_inline void begin_spinning(void *context, u64 lock, u32 flags)
{
	struct spinning *spins;
	u32 zero = 0;

	spins = bpf_map_lookup_elem(&spinning, &zero);
	if (!spins)
		return;
	u32 depth = spins->depth;
	if (depth >= MOST_SPINNING) {
		// Ends were missed: there are no more levels than thread, softirq, interrupt and
		// NMI.
		for (u32 lost = 0; lost < MOST_SPINNING; lost++)
			lose_wait();
		depth = 0;
	}
	spins->depth = depth + 1;
	note_wait(context, &spins->waits[depth & (MOST_SPINNING - 1)], lock, flags);
}

static __always_inline void begin_sleeping(void *context, struct task_struct *task, u64 lock, u32 flags)
{
	struct lock_wait *wait;
	u64 key = (u64)task;
	u32 zero = 0;

	wait = bpf_map_lookup_elem(&sleeping, &key);
	// For a mutex the thread first spins and then sleeps: this is one wait.
	if (wait && wait->lock == lock) {
		wait->flags = flags;
		return;
	}
	wait = bpf_map_lookup_elem(&new_waits, &zero);
	if (!wait)
		return;
	note_wait(context, wait, lock, flags);
	if (bpf_map_update_elem(&sleeping, &key, wait, BPF_ANY))
		lose_wait();
}

SEC("tp_btf/contention_begin")
int BPF_PROG(contended, void *lock, u32 flags)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!is_wanted(task))
		return 0;
	if (only_spins(flags))
		begin_spinning(ctx, (u64)lock, flags);
	else
		begin_sleeping(ctx, task, (u64)lock, flags);
	return 0;
}

// Whether a thread that sleeps for a lock spins for the lock of its list of waiters.
static __always_inline bool is_nested(u64 task, u64 from_ns)
{
	struct lock_wait *outer = bpf_map_lookup_elem(&sleeping, &task);

	return outer && outer->from_ns <= from_ns;
}

// End a wait if this CPU spun for the lock; returns whether it did.
static __always_inline bool end_spinning(struct task_struct *task, u64 lock)
{
	struct spinning *spins;
	u32 zero = 0;

	spins = bpf_map_lookup_elem(&spinning, &zero);
	if (!spins || !spins->depth)
		return 0;
	u32 level = (spins->depth - 1) & (MOST_SPINNING - 1);
	struct lock_wait *wait = &spins->waits[level];
	if (wait->lock != lock)
		return 0;
	u32 flags = wait->flags & 63;
	if (level || is_nested((u64)task, wait->from_ns))
		flags |= LOCK_NESTED;
	keep_wait(task, wait, flags);
	spins->depth = level;
	return 1;
}

SEC("tp_btf/contention_end")
int BPF_PROG(acquired, void *lock, s32 result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 key = (u64)task;
	struct lock_wait *wait;

	if (!is_wanted(task) || end_spinning(task, (u64)lock))
		return 0;
	wait = bpf_map_lookup_elem(&sleeping, &key);
	if (!wait || wait->lock != (u64)lock)
		return 0; // it began before the recording
	keep_wait(task, wait, (wait->flags & 63) | (result ? LOCK_GIVEN_UP : 0));
	bpf_map_delete_elem(&sleeping, &key);
	return 0;
}
