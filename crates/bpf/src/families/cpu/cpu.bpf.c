// Samples: at regular intervals, each CPU records the functions that its thread is in. The kernel
// itself unwinds its own functions; the stack of the program is copied as for calls, but only once
// for each location: samples at two different instructions are two stacks.

#define STACKS_WANTED 1
#define STACKS_OFTEN 0
#include "families/stacks/stacks.h"
#include "bpf/target.h"
#include "bpf/task.h"
#include "events.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

// struct bpf_perf_event_data is part of the interface to programs and does not change.
struct sampled {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
	u64 period, address;
};

#define KERNEL_FRAMES 64

struct scratch_sample {
	u64 frames[KERNEL_FRAMES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch_sample);
} scratch_samples SEC(".maps");

static __always_inline bool is_in_kernel(struct sampled *sampled)
{
	return !(sampled->cs & 3);
}

// Whether the task has a program, whose memory can be read.
static __always_inline bool has_program(struct task_struct *task)
{
	return task->mm && !(task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_EXITING));
}

SEC("perf_event")
int sample(struct sampled *sampled)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct ring *ring = this_ring();
	u64 position, now_ns, stack = 0;
	struct scratch_sample *scratch;
	struct sample_event *event;
	u32 zero = 0, bytes = 0;

	scratch = bpf_map_lookup_elem(&scratch_samples, &zero);
	if (!ring || !scratch || !is_wanted(task))
		return 0;
	now_ns = bpf_ktime_get_ns();
	if (has_program(task))
		stack = stack_of(now_ns, STACK_OF_SAMPLE);
	if (is_in_kernel(sampled)) {
		long found = bpf_get_stack(sampled, scratch->frames, sizeof(scratch->frames), 0);
		if (found > 0)
			bytes = at_most(found, sizeof(scratch->frames)) & ~7u;
	}
	u32 size = sizeof(*event) + bytes;
	event = ring_take(ring, size, EVENT_SAMPLE, now_ns, &position);
	if (!event)
		return 0;
	event->at_ns = now_ns;
	event->stack = stack;
	event->tid = tid_of(task);
	event->cpu = bpf_get_smp_processor_id();
	event->call = call_of(task);
	bpf_probe_read_kernel(event->frames, at_most(bytes, sizeof(scratch->frames)), scratch->frames);
	u32 flags = is_in_kernel(sampled) ? SAMPLE_KERNEL : 0;
	if (bytes == sizeof(scratch->frames))
		flags |= SAMPLE_CUT;
	ring_give(&event->header, position, size, EVENT_SAMPLE, flags);
	return 0;
}
