// Ids of processes and threads in the PID namespace of the recorder and its /proc.
#pragma once

#include "kernel.h"
#include "config.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define PIDTYPE_TGID 1
#define MAX_PID_NS_LEVEL 32

// Level of that namespace, learned from the first task in it. Below 1 is the initial namespace.
s32 namespace_level = 0;

// Threads in an exec: id in the initial namespace -> id in the recorder's namespace. After the
// exec, a thread has the id of its process.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, u32);
} exec_tids SEC(".maps");

// The id that a `struct pid`, given as an address, has on this level; 0: it is in another namespace
// on this level, or in none.
static __always_inline u32 number_on_level(u64 pid, u32 level)
{
	u64 at = bpf_core_field_offset(struct pid, numbers) + (u64)level * bpf_core_type_size(struct upid);
	struct upid *number = (void *)(pid + at);

	return BPF_CORE_READ(number, ns, ns.inum) == config.pid_namespace ? BPF_CORE_READ(number, nr) : 0;
}

// Its id in the recorder's namespace; 0: it has none.
static __always_inline u32 number_here(u64 pid)
{
	struct pid *numbers = (void *)pid;
	u32 levels = pid ? BPF_CORE_READ(numbers, level) : 0;

	if (!namespace_level)
		for (u32 level = 1; level <= MAX_PID_NS_LEVEL && level <= levels; level++)
			if (number_on_level(pid, level))
				namespace_level = level;
	return namespace_level && levels >= namespace_level ? number_on_level(pid, namespace_level) : 0;
}

// Not inlined, so that their variables are not on the stack of the callers, which kernels such as
// 6.1 limit strictly.
static __noinline u32 tid_here(struct task_struct *task)
{
	return number_here((u64)BPF_CORE_READ(task, thread_pid));
}

static __noinline u32 pid_here(struct task_struct *task)
{
	return number_here((u64)BPF_CORE_READ(task, signal, pids[PIDTYPE_TGID]));
}

static __always_inline u32 tid_of(struct task_struct *task)
{
	return config.pid_namespace ? tid_here(task) : task->pid;
}

static __always_inline u32 pid_of(struct task_struct *task)
{
	return config.pid_namespace ? pid_here(task) : task->tgid;
}

// Whether the task has an id in the recorder's namespace: a control group may contain processes of
// other namespaces.
static __always_inline bool is_numbered(struct task_struct *task)
{
	return !config.pid_namespace || tid_of(task);
}

// Note the id of a thread that begins an exec.
static __noinline void keep_exec_tid(struct task_struct *task)
{
	u32 everywhere = task->pid, here = tid_of(task);

	bpf_map_update_elem(&exec_tids, &everywhere, &here, BPF_ANY);
}

// The id that a thread had before its exec, given its id in the initial namespace.
static __always_inline u32 tid_before_exec(struct task_struct *task, u32 everywhere)
{
	u32 *here;

	if (!config.pid_namespace)
		return everywhere;
	here = bpf_map_lookup_elem(&exec_tids, &everywhere);
	return here ? *here : tid_of(task);
}
