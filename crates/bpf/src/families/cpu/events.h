// Samples: what a thread that runs is at, seen at regular times.
#pragma once

#include "bpf/event.h"

enum cpu_kind {
	EVENT_SAMPLE = 13, // after the stack of the program, where that is new
};

// Of event_header.flags.
enum sample_flag {
	SAMPLE_KERNEL = 1, // it ran in the kernel
	SAMPLE_CUT = 2,    // there are more frames
};

struct sample_event {
	struct event_header header;
	unsigned long long at_ns; // CLOCK_MONOTONIC
	unsigned long long stack; // of the program; 0: none
	unsigned int tid;
	unsigned short cpu;
	short call; // number of the system call that it is in; -1: none
	unsigned long long frames[]; // SAMPLE_KERNEL: addresses in the kernel, the innermost first
};
