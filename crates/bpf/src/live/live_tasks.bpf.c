// All threads, by an iterator: it runs when it is read, and costs other processes nothing.

#include "bpf/kernel.h"
#include "bpf/ids.h"
#include "sums.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct sched_info {
	u64 run_delay;
};

struct task_struct___timed {
	struct sched_info sched_info;
	u64 start_time;
};

struct signal_struct___summed {
	u64 sum_sched_runtime;
	unsigned long nvcsw, nivcsw, maj_flt;
	struct task_io_accounting ioac;
};

#pragma clang attribute pop

// Not on the stack, where room is scarce.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct task_counts);
} scratch SEC(".maps");

static __always_inline void count_thread(struct task_counts *counts, struct task_struct *task)
{
	struct task_struct___timed *timed = (void *)task;

	counts->cpu_ns = task->se.sum_exec_runtime;
	if (bpf_core_field_exists(timed->sched_info.run_delay))
		counts->cpu_wait_ns = BPF_CORE_READ(timed, sched_info.run_delay);
	counts->switches = task->nvcsw;
	counts->preemptions = task->nivcsw;
	counts->major_faults = task->maj_flt;
	if (!bpf_core_field_exists(task->ioac.rchar))
		return;
	counts->read_bytes = task->ioac.rchar;
	counts->written_bytes = task->ioac.wchar;
	counts->disk_read_bytes = task->ioac.read_bytes;
	counts->disk_written_bytes = task->ioac.write_bytes;
}

static __always_inline void count_ended(struct task_counts *counts, struct signal_struct___summed *ended)
{
	counts->group_cpu_ns = BPF_CORE_READ(ended, sum_sched_runtime);
	counts->group_switches = BPF_CORE_READ(ended, nvcsw);
	counts->group_preemptions = BPF_CORE_READ(ended, nivcsw);
	counts->group_major_faults = BPF_CORE_READ(ended, maj_flt);
	if (!bpf_core_field_exists(ended->ioac.rchar))
		return;
	counts->group_read_bytes = BPF_CORE_READ(ended, ioac.rchar);
	counts->group_written_bytes = BPF_CORE_READ(ended, ioac.wchar);
	counts->group_disk_read_bytes = BPF_CORE_READ(ended, ioac.read_bytes);
	counts->group_disk_written_bytes = BPF_CORE_READ(ended, ioac.write_bytes);
}

SEC("iter/task")
int list_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	u32 zero = 0;
	struct task_counts *counts = bpf_map_lookup_elem(&scratch, &zero);

	if (!task || !counts)
		return 0;
	__builtin_memset(counts, 0, sizeof(*counts));
	counts->tid = tid_of(task);
	counts->pid = pid_of(task);
	struct task_struct___timed *leader = (void *)BPF_CORE_READ(task, group_leader);
	counts->start_ns = BPF_CORE_READ(leader, start_time);
	counts->cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	bpf_probe_read_kernel(counts->comm, sizeof(counts->comm), (void *)leader + bpf_core_field_offset(struct task_struct, comm));
	count_thread(counts, task);
	count_ended(counts, (void *)BPF_CORE_READ(task, signal));
	bpf_seq_write(ctx->meta->seq, counts, sizeof(*counts));
	return 0;
}
