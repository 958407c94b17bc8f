// What a thread is at.
#pragma once

#include "kernel.h"
#include "event.h"
#include <bpf/bpf_helpers.h>

#define PF_EXITING 0x4
#define PF_IO_WORKER 0x10
#define PF_KTHREAD 0x200000
#define TS_COMPAT 2

// The system call that a thread is in, which need not be the one that runs. Its entry notes the number beside the registers of the
// program; other ways into the kernel, such as a page fault, note -1 there. Below 0: one of `enum no_call`.
static __always_inline int call_of(struct task_struct *task)
{
	if (task->flags & (PF_KTHREAD | PF_IO_WORKER))
		return CALL_NEVER;
	if (task->thread_info.status & TS_COMPAT)
		return CALL_OF_32_BITS;
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	return regs->orig_ax;
}
