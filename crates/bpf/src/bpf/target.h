// Selects the processes that are recorded.
#pragma once

#include "kernel.h"
#include "config.h"
#include "ids.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

// TARGET_PROCESSES: thread groups; their children are added.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, u32);
	__type(value, u8);
} processes SEC(".maps");

// Level of the control group, learned from its first task.
s32 group_level = 0;

// Whether a group is below the recorded group, whose tasks may have created it.
static __noinline bool in_group_below(struct cgroup *group)
{
	struct cgroup *above = 0;

	if (!group_level || group->level <= group_level)
		return 0;
	if (bpf_core_field_exists(group->ancestors)) {
		u32 offset = bpf_core_field_offset(struct cgroup, ancestors) + 8 * (group_level & 63u);
		bpf_probe_read_kernel(&above, sizeof(above), (void *)group + offset);
		return BPF_CORE_READ(above, kn, id) == config.target_cgroup;
	}
	return 0;
}

static __always_inline bool in_cgroup(struct task_struct *task)
{
	struct cgroup *group = task->cgroups->dfl_cgrp;

	if (group->kn->id != config.target_cgroup)
		return in_group_below(group);
	if (!group_level)
		group_level = group->level;
	return 1;
}

static __always_inline bool is_wanted(struct task_struct *task)
{
	if (config.target == TARGET_CGROUP)
		return in_cgroup(task) && is_numbered(task);
	u32 pid = pid_of(task);
	if (config.target == TARGET_PROCESSES)
		return bpf_map_lookup_elem(&processes, &pid) != 0;
	return pid && pid != config.recorder_pid;
}
