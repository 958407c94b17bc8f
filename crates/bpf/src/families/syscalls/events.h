// Sums of system calls by process, call and class of durations.
#pragma once

#include "bpf/event.h"

enum syscalls_kind {
	EVENT_CALL_TIMES = 31, // a sum of calls (see sums_event)
};

// Number of classes of durations per power of two; each duration below this many ns has its own
// class.
#define CLASSES_OF_A_POWER 8

// The key of a sum.
struct call_times_key {
	unsigned long long started_ns; // start of the process: ids of processes are reused
	unsigned int pid;
	unsigned short number; // number of the call
	unsigned short duration_class;
};

// The value of a sum.
struct call_times {
	unsigned long long number;
	unsigned long long failed;
	unsigned long long time_ns;
	unsigned long long first_ns; // when the first of them returned, CLOCK_MONOTONIC
};

struct call_times_event { // a sums_event
	struct event_header header;
	unsigned long long at_ns;
	struct call_times times;
	struct call_times_key key;
};
