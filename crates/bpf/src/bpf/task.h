// State of a thread.
#pragma once

#include "kernel.h"
#include "event.h"
#include "compat.h"
#include <bpf/bpf_helpers.h>

#define PF_EXITING 0x4
#define PF_IO_WORKER 0x10
#define PF_KTHREAD 0x200000

// The system call of a thread, which need not be the current one; negative: one of `enum no_call`.
//
// The entry of a call stores its number next to the saved registers of the program; other ways into
// the kernel, such as a page fault, store -1 there.
static __always_inline int call_of(struct task_struct *task)
{
	if (task->flags & (PF_KTHREAD | PF_IO_WORKER))
		return CALL_NEVER;
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	if (is_compat(task) && (s32)regs->orig_ax >= 0)
		return compat_call(regs->orig_ax, (u32)regs->bx) & COMPAT_NUMBER;
	return regs->orig_ax;
}
