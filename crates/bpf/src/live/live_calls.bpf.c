// System calls by process: number of calls, of failed calls, and their time. Both tracepoints delay
// each call of the machine.

#include "bpf/kernel.h"
#include "bpf/ids.h"
#include "sums.h"
#include "lost.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define MOST_PROCESSES 16384
#define MOST_ERRORS 4095 // MAX_ERRNO

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} begun SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_PROCESSES);
	__type(key, u32);
	__type(value, struct call_sum);
} sums SEC(".maps");

SEC("tp_btf/sys_enter")
int BPF_PROG(enter, struct pt_regs *regs, long call)
{
	u64 *begin = bpf_task_storage_get(&begun, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (begin)
		*begin = bpf_ktime_get_ns();
	return 0;
}

static __always_inline struct call_sum *sum_of(u32 pid)
{
	struct call_sum *sum = bpf_map_lookup_elem(&sums, &pid), none = {};

	if (sum)
		return sum;
	bpf_map_update_elem(&sums, &pid, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&sums, &pid);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(leave, struct pt_regs *regs, long result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 *begin = bpf_task_storage_get(&begun, task, 0, 0);

	if (!begin || !*begin)
		return 0; // it began before this program was loaded
	struct call_sum *sum = sum_of(pid_of(task));
	if (!sum) {
		count_lost();
		return 0;
	}
	__sync_fetch_and_add(&sum->calls, 1);
	__sync_fetch_and_add(&sum->time_ns, bpf_ktime_get_ns() - *begin);
	if (result < 0 && result >= -MOST_ERRORS)
		__sync_fetch_and_add(&sum->errors, 1);
	*begin = 0;
	return 0;
}
