// Births, programs and ends of processes and threads, and the signals that they get.

#include "bpf/kernel.h"
#include "events.h"
#include "bpf/ring.h"
#include "bpf/target.h"
#include "families/stacks/layouts.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define TEXT_BYTES 4096
#define ARGUMENT_BYTES 1024

struct scratch_text {
	char bytes[TEXT_BYTES + ARGUMENT_BYTES + 8];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch_text);
} scratch_texts SEC(".maps");

SEC("tp_btf/sched_process_fork")
int BPF_PROG(created, struct task_struct *parent, struct task_struct *child)
{
	struct ring *ring = this_ring();
	struct fork_event *event;
	u64 position, now_ns = bpf_ktime_get_ns();
	u32 pid = pid_of(child);
	u8 one = 1;

	if (!ring || !is_wanted(parent))
		return 0;
	if (config.target == TARGET_PROCESSES)
		bpf_map_update_elem(&processes, &pid, &one, BPF_ANY);
	if (config.layouts)
		inherit_layout(pid_of(parent), pid);
	event = ring_take(ring, sizeof(*event), EVENT_FORK, now_ns, &position);
	if (!event)
		return 0;
	event->at_ns = now_ns;
	event->parent_tid = tid_of(parent);
	event->parent_pid = pid_of(parent);
	event->tid = tid_of(child);
	event->pid = pid;
	event->user_id = BPF_CORE_READ(child, real_cred, uid.val);
	bpf_probe_read_kernel(event->comm, sizeof(event->comm), child->comm);
	ring_give(&event->header, position, sizeof(*event), EVENT_FORK, 0);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(exec, struct task_struct *task, int old_tid, struct linux_binprm *program)
{
	struct ring *ring = this_ring();
	u64 position, now_ns = bpf_ktime_get_ns();
	struct scratch_text *text;
	struct exec_event *event;
	u32 zero = 0;

	if (!ring || !is_wanted(task))
		return 0;
	if (config.layouts)
		tell_program(now_ns);
	text = bpf_map_lookup_elem(&scratch_texts, &zero);
	if (!text)
		return 0;
	long length = bpf_probe_read_kernel_str(text->bytes, TEXT_BYTES, program->filename);
	if (length < 0)
		length = 0;
	length &= TEXT_BYTES - 1;
	u64 start = task->mm->arg_start;
	u64 arguments = task->mm->arg_end - start;
	if (arguments > ARGUMENT_BYTES)
		arguments = ARGUMENT_BYTES;
	if (bpf_probe_read_user(text->bytes + length, arguments & (2 * ARGUMENT_BYTES - 1), (void *)start))
		arguments = 0;
	u32 size = (sizeof(*event) + length + arguments + 7) & ~7u & 0x1fff;
	event = ring_take(ring, size, EVENT_EXEC, now_ns, &position);
	if (!event)
		return 0;
	event->at_ns = now_ns;
	event->tid = tid_of(task);
	event->pid = pid_of(task);
	event->old_tid = tid_before_exec(task, old_tid);
	event->filename_length = length;
	event->arguments_length = arguments;
	event->user_id = BPF_CORE_READ(task, real_cred, uid.val);
	bpf_probe_read_kernel(event->comm, sizeof(event->comm), task->comm);
	bpf_probe_read_kernel(event->text, (length + arguments) & 0x1fff, text->bytes);
	ring_give(&event->header, position, size, EVENT_EXEC, 0);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(ended, struct task_struct *task)
{
	struct ring *ring = this_ring();
	struct exit_event *event;
	u64 position, now_ns = bpf_ktime_get_ns();
	u32 pid = pid_of(task);

	if (!ring || !is_wanted(task))
		return 0;
	event = ring_take(ring, sizeof(*event), EVENT_EXIT, now_ns, &position);
	if (!event)
		return 0;
	event->at_ns = now_ns;
	event->tid = tid_of(task);
	event->pid = pid;
	event->status = task->exit_code;
	event->last = task->signal->live.counter == 0;
	event->user_id = BPF_CORE_READ(task, real_cred, uid.val);
	event->user_ns = task->utime;
	event->system_ns = task->stime;
	event->minor_faults = task->min_flt;
	event->major_faults = task->maj_flt;
	event->read_chars = task->ioac.rchar;
	event->write_chars = task->ioac.wchar;
	event->read_calls = task->ioac.syscr;
	event->write_calls = task->ioac.syscw;
	event->read_bytes = task->ioac.read_bytes;
	event->write_bytes = task->ioac.write_bytes;
	event->cpu_ns = task->se.sum_exec_runtime;
	bpf_probe_read_kernel(event->comm, sizeof(event->comm), task->comm);
	event->cancelled_bytes = task->ioac.cancelled_write_bytes;
	ring_give(&event->header, position, sizeof(*event), EVENT_EXIT, 0);
	if (task->signal->live.counter == 0) {
		if (config.target == TARGET_PROCESSES)
			bpf_map_delete_elem(&processes, &pid);
		if (config.layouts)
			bpf_map_delete_elem(&layouts, &pid);
	}
	return 0;
}

SEC("tp_btf/signal_deliver")
int BPF_PROG(signalled, int signal, struct kernel_siginfo *info, void *action)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct ring *ring = this_ring();
	struct signal_event *event;
	u64 position, now_ns = bpf_ktime_get_ns();

	if (!ring || !is_wanted(task))
		return 0;
	event = ring_take(ring, sizeof(*event), EVENT_SIGNAL, now_ns, &position);
	if (!event)
		return 0;
	event->at_ns = now_ns;
	event->tid = tid_of(task);
	event->signal = signal;
	event->code = BPF_CORE_READ(info, si_code);
	event->sender_pid = BPF_CORE_READ(info, _sifields._kill._pid);
	ring_give(&event->header, position, sizeof(*event), EVENT_SIGNAL, 0);
	return 0;
}
