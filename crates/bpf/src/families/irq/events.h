// Events about interrupts: each run of a handler, at its end.
#pragma once

#include "bpf/event.h"

enum irq_kind {
	EVENT_INTERRUPT = 24, // a handler has run: of a device, of a softirq, of the CPU itself
	EVENT_TIMER = 25,     // the function of a timer has run
};

// In event_header.flags, for EVENT_INTERRUPT.
enum interrupt_flag {
	INTERRUPT_HARD = 1,   // of a device: after the fixed part stands the name of its handler
	INTERRUPT_SOFT = 2,
	INTERRUPT_VECTOR = 3, // of the CPU's own timer, or from another CPU
};

// Which of them, for INTERRUPT_VECTOR.
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
	unsigned long long inner_ns; // of it in others that came in between
	long long delay_ns;	     // INTERRUPT_SOFT: from when it was raised; -1: not known
	unsigned int tid;	     // the thread in whose time it ran; 0: none that is recorded
	unsigned int woken_tid;	     // the first recorded thread that it woke; 0: none
	unsigned int number;	     // of the interrupt's line, of the softirq, of the vector (see above)
	unsigned int cpu;
	char name[]; // INTERRUPT_HARD: 24 bytes, cut where it is longer
};

struct timer_event {
	struct event_header header;
	unsigned long long at_ns; // when it ended, CLOCK_MONOTONIC
	unsigned long long begin_ns;
	unsigned long long inner_ns;
	long long delay_ns; // from the earliest time that it was set to
	unsigned long long slack_ns; // how much later than that it was allowed to run
	unsigned long long function; // its address
	unsigned int tid;
	unsigned int woken_tid;
	unsigned int cpu;
	unsigned int pad;
};
