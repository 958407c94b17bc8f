// Waits for locks of the kernel, by lock. Locks that are free when requested cost nothing.

#include "bpf/kernel.h"
#include "bpf/ring.h"
#include "bpf/target.h"
#include "families/locks/lock_location.h"
#include "families/locks/waits.h"
#include "sums.h"
#include "lost.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define MOST_LOCKS 8192

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_LOCKS);
	__type(key, u64);
	__type(value, struct lock_sum);
} sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct lock_sum);
} new_sums SEC(".maps");

static __always_inline void lose_wait(void)
{
	count_lost();
}

static __noinline int begin_sum(struct task_struct *task, struct lock_wait *wait, u32 flags)
{
	u32 zero = 0;
	struct lock_sum *sum = bpf_map_lookup_elem(&new_sums, &zero);
	u64 lock = wait->lock;

	if (!sum)
		return 0;
	sum->waits = sum->wait_ns = sum->longest_ns = 0;
	sum->flags = flags;
	sum->bytes = wait->bytes;
	bpf_probe_read_kernel(sum->frames, sizeof(sum->frames), wait->frames);
	find_place(&sum->place, task, lock);
	bpf_map_update_elem(&sums, &lock, sum, BPF_NOEXIST);
	return 0;
}

static __always_inline void name_longest(struct lock_sum *sum, struct lock_wait *wait)
{
	bpf_get_current_comm(sum->waiter, sizeof(sum->waiter));
	__builtin_memset(sum->holder, 0, sizeof(sum->holder));
	if (wait->holder)
		bpf_probe_read_kernel(sum->holder, sizeof(sum->holder),
				      (void *)wait->holder + bpf_core_field_offset(struct task_struct, comm));
}

static __always_inline void keep_wait(struct task_struct *task, struct lock_wait *wait, u32 flags)
{
	u64 lock = wait->lock, wait_ns = bpf_ktime_get_ns() - wait->from_ns;
	struct lock_sum *sum = bpf_map_lookup_elem(&sums, &lock);

	if (!sum) {
		begin_sum(task, wait, flags);
		sum = bpf_map_lookup_elem(&sums, &lock);
	}
	if (!sum) {
		count_lost();
		return;
	}
	__sync_fetch_and_add(&sum->waits, 1);
	__sync_fetch_and_add(&sum->wait_ns, wait_ns);
	if (wait_ns > sum->longest_ns) {
		sum->longest_ns = wait_ns;
		name_longest(sum, wait);
	}
}
