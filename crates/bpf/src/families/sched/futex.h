// Finds the holder of a user-space lock that a thread waits for. The kernel knows a futex only as
// an address, but the memory there may identify the holder:
//
// - mutexes of glibc: the word itself, a count, the thread id of the owner (struct
//   __pthread_mutex_s in sysdeps/x86/nptl/bits/struct_mutex.h). A waiter expects a 2 in the word:
//   locked, with waiters (sysdeps/nptl/lowlevellock.h);
// - robust mutexes, those with priority inheritance and those of musl: the word is the thread id of
//   the owner, with a flag for waiters (futex(2), FUTEX_WAITERS).
//
// Other futexes (conditions, semaphores) may look like these by chance: the user side accepts only
// ids of threads that it knows.
#pragma once

#include "bpf/task.h"
#include "bpf/ids.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define CALL_FUTEX 202
#define FUTEX_WAIT 0
#define FUTEX_LOCK_PI 6
#define FUTEX_WAIT_BITSET 9
#define FUTEX_LOCK_PI2 13
#define FUTEX_PRIVATE_FLAG 128
#define FUTEX_COMMAND 127
#define FUTEX_WAITERS 0x80000000U
#define FUTEX_TID_MASK 0x3fffffffU
#define MUTEX_CONTENDED 2

struct glibc_mutex {
	u32 word, count, owner;
};

// Whether the program of this thread uses the same thread ids as the recorder: one in another PID
// namespace does not.
static __always_inline bool has_our_numbers(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	u32 level = pid ? BPF_CORE_READ(pid, level) : 0;
	u64 at = bpf_core_field_offset(struct pid, numbers) + (u64)level * bpf_core_type_size(struct upid);

	return pid && BPF_CORE_READ((struct upid *)((void *)pid + at), nr) == tid_of(task);
}

// The id of the thread that holds the lock for which `task`, the current thread, waits in futex(2);
// 0: unknown.
static __noinline u32 holder_of_futex(struct task_struct *task)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	struct glibc_mutex mutex = {};
	u32 command = regs->si & FUTEX_COMMAND, expected = regs->dx;

	bool waits = command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;
	bool inherits = command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2;
	bool is_glibc = waits && expected == MUTEX_CONTENDED;
	if (!is_glibc && !inherits && !(waits && expected & FUTEX_WAITERS))
		return 0;
	if (bpf_probe_read_user(&mutex, sizeof(mutex), (void *)regs->di) || !has_our_numbers(task))
		return 0;
	return is_glibc ? mutex.owner : mutex.word & FUTEX_TID_MASK;
}

static __always_inline bool is_shared_futex(struct task_struct *task)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);

	return !(regs->si & FUTEX_PRIVATE_FLAG);
}
