// Events of the scheduler: which thread a CPU runs, and who wakes whom.
#pragma once

#include "bpf/event.h"

enum sched_kind {
	EVENT_SWITCH = 11, // a CPU turns from one thread to another
	EVENT_WAKE = 12,   // a thread is woken
};

// Of event_header.flags, for EVENT_SWITCH.
enum switch_flag {
	SWITCH_PREEMPTED = 1, // the thread before could have gone on
	SWITCH_SHARED = 2, // holder_tid: the lock may be one that processes share
};

// Of event_header.flags, for EVENT_WAKE.
enum wake_flag {
	WAKE_NEW = 1,   // it was just made, and has not run yet
	WAKE_OTHER = 2, // the waker is not recorded: its name is here
	WAKE_INTERRUPT = 4, // an interrupt woke it: what ran there did nothing, or was in no call
};

// Of switch_event.state: bits that kernels since 4.14 number alike (include/linux/sched.h).
enum task_state {
	STATE_SLEEPING = 1,
	STATE_UNINTERRUPTIBLE = 2,
	STATE_STOPPED = 4,
	STATE_TRACED = 8,
	STATE_DEAD = 0x80,
	STATE_NOLOAD = 0x400, // with STATE_UNINTERRUPTIBLE: a thread of the kernel has nothing to do
};

struct switch_event {
	struct event_header header;
	unsigned long long at_ns; // CLOCK_MONOTONIC
	unsigned int from_tid;    // that ran until now; 0: none that is recorded
	unsigned int to_tid;      // that runs from now on; 0: none that is recorded
	unsigned short state;     // what the thread before waits for: task_state; 0: nothing
	unsigned short cpu;
	int call; // number of the system call that the thread before is in; below 0: no_call
	unsigned int switches; // how often the thread before has left a CPU by now, the lower half
	unsigned int holder_tid; // who has the lock that the thread before waits for, as far as the lock's memory shows; 0: none, or unknown
};

struct wake_event {
	struct event_header header;
	unsigned long long at_ns; // CLOCK_MONOTONIC
	unsigned int tid;         // who is woken
	unsigned int waker_tid;   // what ran on the CPU where it was woken; 0: it is not recorded
	char waker[16];           // WAKE_OTHER
};
