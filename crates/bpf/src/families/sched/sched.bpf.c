// Running and waiting of threads: one event for each switch of a CPU from or to a recorded thread,
// and one for each wake-up of one.

#include "bpf/kernel.h"
#include "bpf/ring.h"
#include "bpf/target.h"
#include "bpf/task.h"
#include "events.h"
#include "futex.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static __always_inline u32 recorded_tid(struct task_struct *task)
{
	return is_wanted(task) ? tid_of(task) : 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switched, bool preempt, struct task_struct *from, struct task_struct *to, u32 state)
{
	u32 from_tid = recorded_tid(from), to_tid = recorded_tid(to);
	struct ring *ring = this_ring();
	struct switch_event *event;
	u64 position;
	u32 flags = preempt ? SWITCH_PREEMPTED : 0, holder_tid = 0;

	if (!ring || !(from_tid | to_tid))
		return 0;
	int call = from_tid ? call_of(from) : CALL_NONE;
	if (call == CALL_FUTEX && !preempt) {
		holder_tid = holder_of_futex(from);
		if (is_shared_futex(from))
			flags |= SWITCH_SHARED;
	}
	u64 now_ns = bpf_ktime_get_ns();
	event = ring_take(ring, sizeof(*event), EVENT_SWITCH, now_ns, &position);
	if (!event)
		return 0; // counted as lost
	event->at_ns = now_ns;
	event->from_tid = from_tid;
	event->to_tid = to_tid;
	event->state = preempt ? 0 : state;
	event->cpu = bpf_get_smp_processor_id();
	event->call = call;
	// The kernel counts a switch before the tracepoint.
	event->switches = from->nvcsw + from->nivcsw;
	event->holder_tid = holder_tid;
	ring_give(&event->header, position, sizeof(*event), EVENT_SWITCH, flags);
	return 0;
}

// Whether the running thread does work of its own in the kernel. If not, kernel code that runs
// there is an interrupt.
static __always_inline bool is_at_work(struct task_struct *task)
{
	if (task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_EXITING))
		return task->pid != 0; // idle threads of CPUs have id 0
	return call_of(task) >= 0;
}

static __always_inline int write_wake(struct task_struct *task, u32 flags)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	struct ring *ring = this_ring();
	struct wake_event *event;
	u64 position;

	if (!ring || !is_wanted(task))
		return 0;
	u64 now_ns = bpf_ktime_get_ns();
	event = ring_take(ring, sizeof(*event), EVENT_WAKE, now_ns, &position);
	if (!event)
		return 0;
	event->at_ns = now_ns;
	event->tid = tid_of(task);
	event->waker_tid = recorded_tid(waker);
	if (!is_at_work(waker))
		flags |= WAKE_INTERRUPT;
	if (!event->waker_tid) {
		flags |= WAKE_OTHER;
		bpf_probe_read_kernel(event->waker, sizeof(event->waker), waker->comm);
	} else {
		__builtin_memset(event->waker, 0, sizeof(event->waker));
	}
	ring_give(&event->header, position, sizeof(*event), EVENT_WAKE, flags);
	return 0;
}

// In the context of the waker; sched_wakeup may come later, on the CPU of the woken thread.
SEC("tp_btf/sched_waking")
int BPF_PROG(waking, struct task_struct *task)
{
	return write_wake(task, 0);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(waking_new, struct task_struct *task)
{
	return write_wake(task, WAKE_NEW);
}
