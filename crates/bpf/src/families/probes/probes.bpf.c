// Probes that the user named: an event for each hit, with the requested arguments. The thread that
// hits a probe is delayed.

// The header of USDT probes reads the registers by the kernel's names.
#define __VMLINUX_H__
#define RING_PREEMPTIBLE
#define STACKS_WANTED 1
#define STACKS_OFTEN 0
#include "families/stacks/stacks.h"
#include "bpf/target.h"
#include "bpf/task.h"
#include "events.h"
#include "spec.h"
#include <bpf/usdt.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

// Where the arguments are.
enum source { AT_ENTRY, AT_RETURN, AT_USDT, AT_TRACEPOINT };

// Set before loading.
const volatile bool with_stacks SEC(".rodata.probes") = 0;

// A uprobe program may be interrupted by another thread, whose program then finds the scratch in
// use.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} stacks_in_use SEC(".maps");

static __always_inline u64 stack_here(u64 now_ns)
{
	u32 zero = 0;
	u64 *in_use = with_stacks ? bpf_map_lookup_elem(&stacks_in_use, &zero) : 0, stack = 0;

	if (!in_use)
		return 0;
	if (__sync_fetch_and_add(in_use, 1) == 0)
		stack = stack_of(now_ns, STACK_OF_SAMPLE);
	__sync_fetch_and_add(in_use, -1);
	return stack;
}

static __always_inline s64 of_register(struct pt_regs *regs, u32 number)
{
	switch (number) {
	case 0:
		return regs->di;
	case 1:
		return regs->si;
	case 2:
		return regs->dx;
	case 3:
		return BPF_CORE_READ(regs, cx);
	case 4:
		return regs->r8;
	default:
		return regs->r9;
	}
}

static __always_inline s64 of_tracepoint(void *data, struct argument *argument)
{
	s64 value = 0;

	bpf_probe_read_kernel(&value, at_most(argument->bytes, sizeof(value)), data + argument->offset);
	return value;
}

static __always_inline s64 value_of(void *context, enum source source, u32 number, struct argument *argument)
{
	long value = 0;

	switch (source) {
	case AT_ENTRY:
		return of_register(context, number);
	case AT_RETURN:
		return ((struct pt_regs *)context)->ax;
	case AT_USDT:
		bpf_usdt_arg(context, number, &value);
		return value;
	default:
		return argument->kind == ARGUMENT_TEXT_HERE ? 0 : of_tracepoint(context, argument);
	}
}

// Copy a text; returns its length with the NUL.
static __always_inline s64 copy_text(char *to, void *context, s64 value, struct argument *argument)
{
	if (argument->kind == ARGUMENT_TEXT)
		return bpf_probe_read_user_str(to, TEXT_BYTES, (void *)value);
	u64 at = argument->kind == ARGUMENT_TEXT_FAR ? value & 0xffff : argument->offset;
	return bpf_probe_read_kernel_str(to, TEXT_BYTES, context + at);
}

static __always_inline int reached(void *context, u64 number, enum source source)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct ring *ring = this_ring();
	u64 position, now_ns = bpf_ktime_get_ns(), stack = 0;
	u32 key = number, text = 0;
	struct probe *probe = bpf_map_lookup_elem(&probes, &key);
	struct probe_event *event;

	if (!ring || !probe || !is_wanted(task))
		return 0;
	// At a return the stack contains the kernel's own return address.
	if (source != AT_RETURN && task->mm && !(task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_EXITING)))
		stack = stack_here(now_ns);
	u32 values = at_most(probe->arguments, MOST_ARGUMENTS), texts = at_most(probe->texts, MOST_ARGUMENTS);
	u32 size = sizeof(*event) + values * 8 + texts * TEXT_BYTES;
	event = ring_take_in_order(ring, size, EVENT_PROBE, &now_ns, &position);
	if (!event)
		return 0;
	event->at_ns = now_ns;
	event->stack = stack;
	event->tid = tid_of(task);
	event->cpu = bpf_get_smp_processor_id();
	event->probe = number;
	char *after = (char *)event + sizeof(*event) + values * 8;
	for (u32 i = 0; i < MOST_ARGUMENTS; i++) {
		if (i >= values)
			break;
		struct argument *argument = &probe->argument[i];
		s64 value = value_of(context, source, i, argument);
		if (argument->kind != ARGUMENT_VALUE && text < texts)
			value = copy_text(after + text++ * TEXT_BYTES, context, value, argument);
		event->values[i] = value;
	}
	ring_give(&event->header, position, size, EVENT_PROBE, 0);
	return 0;
}

SEC("uprobe")
int entered(struct pt_regs *context)
{
	return reached(context, bpf_get_attach_cookie(context), AT_ENTRY);
}

SEC("uretprobe")
int returned(struct pt_regs *context)
{
	return reached(context, bpf_get_attach_cookie(context), AT_RETURN);
}

SEC("usdt")
int marked(struct pt_regs *context)
{
	return reached(context, bpf_usdt_cookie(context), AT_USDT);
}

SEC("tracepoint")
int traced(void *context)
{
	return reached(context, bpf_get_attach_cookie(context), AT_TRACEPOINT);
}
