// Events about interrupts: each run of a handler, at its end.
#pragma once

#include "bpf/event.h"

enum irq_kind {
	EVENT_INTERRUPT = 24, // a handler of a device, of a softirq or of the CPU itself has run
	EVENT_TIMER = 25,     // the function of a timer has run
};

// Flags of event_header.flags for EVENT_INTERRUPT.
enum interrupt_flag {
	INTERRUPT_HARD = 1,   // of a device: the name of its handler follows the fixed part
	INTERRUPT_SOFT = 2,
	INTERRUPT_VECTOR = 3, // of the CPU's timer, or from another CPU
};

// Kinds of INTERRUPT_VECTOR.
enum vector_flag {
	VECTOR_TIMER = 0,
	VECTOR_RESCHEDULE = 1,
	VECTOR_CALL = 2,
	VECTOR_CALL_SINGLE = 3,
	VECTOR_WORK = 4,
};

struct interrupt_event {
	struct event_header header;
	unsigned long long at_ns;    // when it ended, CLOCK_MONOTONIC
	unsigned long long begin_ns;
	unsigned long long inner_ns; // part of the time spent in other handlers that interrupted it
	long long delay_ns;	     // INTERRUPT_SOFT: time since it was raised; -1: unknown
	unsigned int tid;	     // thread that it interrupted; 0: none that is recorded
	unsigned int woken_tid;	     // the first recorded thread that it woke; 0: none
	unsigned int number;	     // number of the interrupt line, of the softirq or of the vector (see above)
	unsigned int cpu;
	char name[]; // INTERRUPT_HARD: 24 bytes, cut if longer
};

struct timer_event {
	struct event_header header;
	unsigned long long at_ns; // when it ended, CLOCK_MONOTONIC
	unsigned long long begin_ns;
	unsigned long long inner_ns;
	long long delay_ns; // time since the earliest time that it was set to
	unsigned long long slack_ns; // how much later than that it was allowed to run
	unsigned long long function; // address of the function
	unsigned int tid;
	unsigned int woken_tid;
	unsigned int cpu;
	unsigned int pad;
};
