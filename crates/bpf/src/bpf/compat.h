// System calls of 32-bit programs, which have other numbers and, in some cases, another layout of
// arguments.
#pragma once

#include "kernel.h"
#include "config.h"
#include <bpf/bpf_helpers.h>

#define TS_COMPAT 2
#define COMPAT_NUMBER 0x3ff
#define COMPAT_BITS 10

// How arguments are converted to those of the 64-bit call. `calls/compat.rs` has the same values.
enum compat_how {
	COMPAT_SAME,
	COMPAT_PAGES,               // mmap2: an offset in pages
	COMPAT_IN_MEMORY,           // one pointer to all arguments
	COMPAT_HALVES_FROM_FOURTH,  // a 64-bit number in two halves
	COMPAT_HALVES_FROM_SECOND,
	COMPAT_LONG_SEEK,           // _llseek writes its result into memory
	COMPAT_SOCKETS,             // the number of the socket call, and a pointer to its arguments
	COMPAT_SHORT_OFFSETS,       // pointers to offsets point to 32-bit numbers
};

#define COMPAT_SOCKET_CALLS 32

// net/socket.c, socketcall(2): SYS_SOCKET is 1.
static const volatile u16 socket_calls[COMPAT_SOCKET_CALLS] = {
	0, 41, 49, 42, 50, 43, 51, 52, 53, 44, 45, 44, 45, 48, 54, 55, 46, 47, 288, 299, 307,
};

static __always_inline bool is_compat(struct task_struct *task)
{
	return task->thread_info.status & TS_COMPAT;
}

// The number of the equivalent 64-bit call; the higher bits are the `compat_how` of its arguments.
static __always_inline u16 compat_call(u64 number, u64 first_argument)
{
	u16 same = config.compat[number & (CALLS - 1)];

	if (same >> COMPAT_BITS == COMPAT_SOCKETS && first_argument < COMPAT_SOCKET_CALLS) {
		u16 meant = socket_calls[first_argument & (COMPAT_SOCKET_CALLS - 1)];
		if (meant)
			same = meant | COMPAT_SOCKETS << COMPAT_BITS;
	}
	return same;
}
