// Kernel locks that a thread has to wait for: one event for each wait, at its end. Before the first
// wait for a lock, and once a second at most after that, an event with its location, because memory
// is reused.

#include "bpf/kernel.h"
#include "bpf/ring.h"
#include "bpf/target.h"
#include "bpf/task.h"
#include "events.h"
#include "lock_location.h"
#include "waits.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define DESCRIBED_NS 1000000000ull

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, u64);
} described SEC(".maps");

// In separate memory, not in the ring: whether the ring has room is known only afterwards.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct lock_event);
} descriptions SEC(".maps");

static __noinline int describe_anew(struct task_struct *task, u64 lock, u64 now_ns)
{
	struct lock_event *description, *event;
	struct ring *ring = this_ring();
	u64 position;
	u32 zero = 0;

	description = bpf_map_lookup_elem(&descriptions, &zero);
	if (!ring || !description)
		return 0;
	find_place(description, task, lock);
	description->at_ns = now_ns;
	event = ring_take(ring, sizeof(*event), EVENT_LOCK, now_ns, &position);
	if (!event)
		return 0;
	bpf_probe_read_kernel((void *)event + sizeof(event->header), sizeof(*event) - sizeof(event->header),
			      (void *)description + sizeof(event->header));
	ring_give(&event->header, position, sizeof(*event), EVENT_LOCK, 0);
	return 0;
}

static __always_inline void describe(struct task_struct *task, u64 lock, u64 now_ns)
{
	u64 *before = bpf_map_lookup_elem(&described, &lock);

	if (before && now_ns - *before < DESCRIBED_NS)
		return;
	bpf_map_update_elem(&described, &lock, &now_ns, BPF_ANY);
	describe_anew(task, lock, now_ns);
}

static __always_inline void lose_wait(void)
{
	lose(EVENT_LOCK_WAIT);
}

static __always_inline void name_holder(struct lock_wait_event *event, u64 holder)
{
	struct task_struct *task = (void *)holder;

	__builtin_memset(event->holder, 0, sizeof(event->holder));
	event->holder_tid = 0;
	if (!holder)
		return;
	event->holder_tid = config.pid_namespace ? tid_here(task) : BPF_CORE_READ(task, pid);
	bpf_probe_read_kernel(event->holder, sizeof(event->holder), (void *)holder + bpf_core_field_offset(struct task_struct, comm));
}

static __always_inline void keep_wait(struct task_struct *task, struct lock_wait *wait, u32 flags)
{
	u32 bytes = at_most(wait->bytes, sizeof(wait->frames)) & ~7u;
	u32 size = sizeof(struct lock_wait_event) + bytes;
	u64 position, now_ns = bpf_ktime_get_ns();
	struct ring *ring = this_ring();
	struct lock_wait_event *event;

	if (!ring)
		return;
	describe(task, wait->lock, now_ns);
	event = ring_take(ring, size, EVENT_LOCK_WAIT, now_ns, &position);
	if (!event)
		return;
	event->at_ns = now_ns;
	event->lock = wait->lock;
	event->wait_ns = now_ns - wait->from_ns;
	event->tid = tid_of(task);
	event->cpu = bpf_get_smp_processor_id();
	event->call = call_of(task);
	event->pad = 0;
	name_holder(event, wait->holder);
	bpf_probe_read_kernel(event->frames, at_most(bytes, sizeof(wait->frames)), wait->frames);
	ring_give(&event->header, position, size, EVENT_LOCK_WAIT, flags);
}
