// Events of the scheduler: switches of CPUs between threads, and wake-ups.
#pragma once

#include "bpf/event.h"

enum sched_kind {
	EVENT_SWITCH = 11, // a CPU switches from one thread to another
	EVENT_WAKE = 12,   // a thread is woken
};

// Flags of event_header.flags for EVENT_SWITCH.
enum switch_flag {
	SWITCH_PREEMPTED = 1, // the previous thread was still runnable
	SWITCH_SHARED = 2, // the lock of holder_tid may be shared between processes
};

// Flags of event_header.flags for EVENT_WAKE.
enum wake_flag {
	WAKE_NEW = 1,   // the thread is new and has not run yet
	WAKE_OTHER = 2, // the waker is not recorded; its name follows
	WAKE_INTERRUPT = 4, // an interrupt woke it: the thread that was running there was idle or in no call
};

// Bits of switch_event.state, with the same numbers in all kernels since 4.14
// (include/linux/sched.h).
enum task_state {
	STATE_SLEEPING = 1,
	STATE_UNINTERRUPTIBLE = 2,
	STATE_STOPPED = 4,
	STATE_TRACED = 8,
	STATE_DEAD = 0x80,
	STATE_NOLOAD = 0x400, // with STATE_UNINTERRUPTIBLE: an idle kernel thread
};

struct switch_event {
	struct event_header header;
	unsigned long long at_ns; // CLOCK_MONOTONIC
	unsigned int from_tid;    // thread that ran until now; 0: none that is recorded
	unsigned int to_tid;      // thread that runs from now on; 0: none that is recorded
	unsigned short state;     // the wait of the previous thread: task_state; 0: none
	unsigned short cpu;
	int call; // number of the system call of the previous thread; negative: no_call
	unsigned int switches; // number of times that the previous thread has left a CPU, the lower half
	unsigned int holder_tid; // holder of the lock that the previous thread waits for, if the memory shows it; 0: none, or unknown
};

struct wake_event {
	struct event_header header;
	unsigned long long at_ns; // CLOCK_MONOTONIC
	unsigned int tid;         // thread that is woken
	unsigned int waker_tid;   // thread that ran on the CPU of the wake-up; 0: not recorded
	char waker[16];           // WAKE_OTHER
};
