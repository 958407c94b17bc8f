// Samples: the functions of a running thread, recorded at regular intervals.
#pragma once

#include "bpf/event.h"

enum cpu_kind {
	EVENT_SAMPLE = 13, // after the stack of the program, if that is new
};

// Flags of event_header.flags.
enum sample_flag {
	SAMPLE_KERNEL = 1, // the thread ran in the kernel
	SAMPLE_CUT = 2,    // there are more frames
};

struct sample_event {
	struct event_header header;
	unsigned long long at_ns; // CLOCK_MONOTONIC
	unsigned long long stack; // stack of the program; 0: none
	unsigned int tid;
	unsigned short cpu;
	short call; // number of the current system call; -1: none
	unsigned long long frames[]; // SAMPLE_KERNEL: addresses in the kernel, innermost first
};
