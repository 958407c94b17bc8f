// Interrupts: handlers that take a CPU from its thread without the scheduler. One event for each
// run of a handler, at its end.
//
// They belong to no thread. Unless the whole system is recorded, only those are that run while a
// recorded thread has the CPU, as they use its time, and those that wake a recorded thread.

#include "bpf/kernel.h"
#include "bpf/ring.h"
#include "bpf/target.h"
#include "events.h"
#include "runs.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define NAME_BYTES 24

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct irqaction {
	const char *name;
};

struct timerqueue_node {
	s64 expires;
};

struct hrtimer_clock_base {
	s64 offset; // offset of its clock to CLOCK_MONOTONIC
};

struct hrtimer {
	struct timerqueue_node node;
	s64 _softexpires;
	void *function;
	struct hrtimer_clock_base *base;
	u8 is_soft;
};

#pragma clang attribute pop

// Whether the run is to be recorded, and the thread that it interrupted; 0: none that is recorded.
static __always_inline bool is_ours(struct run *run, u32 *tid)
{
	struct task_struct *task = bpf_get_current_task_btf();

	*tid = is_wanted(task) ? tid_of(task) : 0;
	return config.target == TARGET_ALL || *tid || run->woken_tid;
}

static __always_inline int write_interrupt(u32 level, u32 flags, u32 number, const char *name)
{
	u64 now_ns = bpf_ktime_get_ns(), position;
	struct runs *here = this_cpu();
	struct ring *ring = this_ring();
	struct run *run = here ? end_run(here, level, now_ns) : 0;
	struct interrupt_event *event;
	u32 tid, size = sizeof(*event) + (name ? NAME_BYTES : 0);

	if (!ring || !run || !is_ours(run, &tid))
		return 0;
	event = ring_take(ring, size, EVENT_INTERRUPT, now_ns, &position);
	if (!event)
		return 0; // counted as lost
	event->at_ns = now_ns;
	event->begin_ns = run->begin_ns;
	event->inner_ns = run->inner_ns;
	event->delay_ns = run->delay_ns;
	event->tid = tid;
	event->woken_tid = run->woken_tid;
	event->number = number;
	event->cpu = bpf_get_smp_processor_id();
	if (name)
		bpf_probe_read_kernel_str(event->name, NAME_BYTES, name);
	ring_give(&event->header, position, size, EVENT_INTERRUPT, flags);
	return 0;
}

static __always_inline int begin(u32 level)
{
	struct runs *here = this_cpu();

	if (here)
		begin_run(here, level);
	return 0;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(handler_begins, int irq, struct irqaction *action)
{
	return begin(LEVEL_HARD);
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(handler_ends, int irq, struct irqaction *action)
{
	return write_interrupt(LEVEL_HARD, INTERRUPT_HARD, irq, action->name);
}

// A softirq may be raised several times before it runs: the first time counts.
SEC("tp_btf/softirq_raise")
int BPF_PROG(softirq_is_raised, unsigned int number)
{
	struct runs *here = this_cpu();

	if (here && !here->raised_ns[number & (SOFTIRQS - 1)])
		here->raised_ns[number & (SOFTIRQS - 1)] = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(softirq_begins, unsigned int number)
{
	struct runs *here = this_cpu();
	struct run *run;

	if (!here)
		return 0;
	u64 *raised_ns = &here->raised_ns[number & (SOFTIRQS - 1)];
	run = begin_run(here, LEVEL_SOFT);
	if (*raised_ns)
		run->delay_ns = run->begin_ns - *raised_ns;
	*raised_ns = 0;
	return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(softirq_ends, unsigned int number)
{
	return write_interrupt(LEVEL_SOFT, INTERRUPT_SOFT, number, 0);
}

// Interrupts of the CPU itself have tracepoints of their own.
#define VECTOR(word, number)                                                                                                             \
	SEC("tp_btf/" #word "_entry")                                                                                                    \
	int BPF_PROG(word##_begins, int vector)                                                                                          \
	{                                                                                                                                \
		return begin(LEVEL_HARD);                                                                                                \
	}                                                                                                                                \
	SEC("tp_btf/" #word "_exit")                                                                                                     \
	int BPF_PROG(word##_ends, int vector)                                                                                            \
	{                                                                                                                                \
		return write_interrupt(LEVEL_HARD, INTERRUPT_VECTOR, number, 0);                                                         \
	}

VECTOR(local_timer, VECTOR_TIMER)
VECTOR(reschedule, VECTOR_RESCHEDULE)
VECTOR(call_function, VECTOR_CALL)
VECTOR(call_function_single, VECTOR_CALL_SINGLE)
VECTOR(irq_work, VECTOR_WORK)

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(timer_begins, struct hrtimer *timer)
{
	struct runs *here = this_cpu();
	struct run *run;

	if (!here)
		return 0;
	run = begin_run(here, timer->is_soft ? LEVEL_SOFT_TIMER : LEVEL_HARD_TIMER);
	// The time that it was set to, by CLOCK_MONOTONIC.
	s64 due_ns = timer->_softexpires - timer->base->offset;
	run->delay_ns = (s64)run->begin_ns - due_ns;
	run->slack_ns = timer->node.expires - timer->_softexpires;
	run->function = (u64)timer->function;
	return 0;
}

static __always_inline int write_timer(struct run *run, u64 now_ns)
{
	struct ring *ring = this_ring();
	struct timer_event *event;
	u64 position;
	u32 tid;

	if (!ring || !is_ours(run, &tid))
		return 0;
	event = ring_take(ring, sizeof(*event), EVENT_TIMER, now_ns, &position);
	if (!event)
		return 0;
	event->at_ns = now_ns;
	event->begin_ns = run->begin_ns;
	event->inner_ns = run->inner_ns;
	event->delay_ns = run->delay_ns;
	event->slack_ns = run->slack_ns;
	event->function = run->function;
	event->tid = tid;
	event->woken_tid = run->woken_tid;
	event->cpu = bpf_get_smp_processor_id();
	event->pad = 0;
	ring_give(&event->header, position, sizeof(*event), EVENT_TIMER, 0);
	return 0;
}

// Its function may have freed the timer, so the timer is not read. A hard-interrupt timer ends
// before the interrupted softirq timer continues.
SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(timer_ends, struct hrtimer *timer)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct runs *here = this_cpu();
	struct run *run;

	if (!here)
		return 0;
	run = end_run(here, LEVEL_HARD_TIMER, now_ns);
	if (!run)
		run = end_run(here, LEVEL_SOFT_TIMER, now_ns);
	return run ? write_timer(run, now_ns) : 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(wakes, struct task_struct *task)
{
	struct runs *here = this_cpu();
	struct run *run = here ? running_below(here, LEVELS) : 0;

	if (run && !run->woken_tid && is_wanted(task))
		run->woken_tid = tid_of(task);
	return 0;
}
