// Durations of system calls, added up here by process and call. No event is sent for a call.

#include "bpf/kernel.h"
#include "bpf/ring.h"
#include "bpf/target.h"
#include "bpf/task.h"
#include "events.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define MOST_SUMS 262144
#define ERRORS 4095

// Entries are allocated on demand: most programs need some hundred.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MOST_SUMS);
	__type(key, struct call_times_key);
	__type(value, struct call_times);
} call_times SEC(".maps");

struct started {
	u64 at_ns; // 0: in no call
	u64 number;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct started);
} calls_started SEC(".maps");

// The inverse of `bounds` in times.rs. clang 14 runs out of memory when it counts leading zeros for
// BPF.
static __always_inline u16 duration_class(u64 duration_ns)
{
	u64 rest = duration_ns;
	u32 power = 0;

	if (duration_ns < CLASSES_OF_A_POWER)
		return duration_ns;
	for (u32 step = 32; step; step /= 2)
		if (rest >> step) {
			power += step;
			rest >>= step;
		}
	return (power - 2) * CLASSES_OF_A_POWER + ((duration_ns >> ((power - 3) & 63)) & (CLASSES_OF_A_POWER - 1));
}

// Create the sum of a key; NULL: there is no room for it.
static __noinline struct call_times *begin_times(struct call_times_key *key, u64 now_ns)
{
	struct call_times times = {.first_ns = now_ns};

	if (!key)
		return 0;
	// Another CPU may have created it.
	bpf_map_update_elem(&call_times, key, &times, BPF_NOEXIST);
	return bpf_map_lookup_elem(&call_times, key);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(call_begins, struct pt_regs *regs, long number)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct started *started;

	if (!is_wanted(task) || (u64)number >= CALLS)
		return 0;
	if (is_compat(task))
		number = compat_call(number, (u32)regs->bx) & COMPAT_NUMBER;
	started = bpf_task_storage_get(&calls_started, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!started) {
		lose(EVENT_CALL_TIMES);
		return 0;
	}
	started->number = number;
	started->at_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(call_ends, struct pt_regs *regs, long result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct started *started = bpf_task_storage_get(&calls_started, task, 0, 0);
	struct call_times_key key = {};
	struct call_times *times;
	u64 now_ns, duration_ns;

	// A child returns from the call that created it without an entry; so do calls in progress
	// when recording began.
	if (!started || !started->at_ns)
		return 0;
	now_ns = bpf_ktime_get_ns();
	duration_ns = now_ns - started->at_ns;
	started->at_ns = 0;
	key.started_ns = task->group_leader->start_time;
	key.pid = pid_of(task);
	key.number = started->number;
	key.duration_class = duration_class(duration_ns);
	times = bpf_map_lookup_elem(&call_times, &key);
	if (!times)
		times = begin_times(&key, now_ns);
	if (!times) {
		lose(EVENT_CALL_TIMES);
		return 0;
	}
	__sync_fetch_and_add(&times->number, 1);
	__sync_fetch_and_add(&times->time_ns, duration_ns);
	if ((u64)result >= (u64)-ERRORS)
		__sync_fetch_and_add(&times->failed, 1);
	return 0;
}
