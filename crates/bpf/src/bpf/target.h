// Whose events are wanted.
#pragma once

#include "kernel.h"
#include "config.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

// TARGET_PROCESSES: thread groups; those that they make join them.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, u32);
	__type(value, u8);
} processes SEC(".maps");

static __always_inline bool in_cgroup(struct task_struct *task)
{
	struct cgroup *cgroup = task->cgroups->dfl_cgrp;
	int level = cgroup->level;

	// Groups below it are its own; there are rarely any, so the walk up is not worth a loop on the usual way.
	if (level == config.target_level)
		return cgroup->kn->id == config.target_cgroup;
	return 0;
}

static __always_inline bool is_wanted(struct task_struct *task)
{
	if (config.target == TARGET_CGROUP)
		return in_cgroup(task);
	u32 pid = task->tgid;
	if (config.target == TARGET_PROCESSES)
		return bpf_map_lookup_elem(&processes, &pid) != 0;
	return pid != config.recorder_pid;
}
