// Events of probes that the user named: functions of programs, USDT probes and tracepoints.
#pragma once

#include "bpf/event.h"

enum probes_kind {
	EVENT_PROBE = 29, // after the stack of the program, if that is new
};

struct probe_event {
	struct event_header header;
	unsigned long long at_ns; // CLOCK_MONOTONIC
	unsigned long long stack; // stack of the program; 0: none
	unsigned int tid;
	unsigned short cpu;
	unsigned short probe; // index among the probes of the recording
	// One for each argument; for a text its length with the terminating NUL, or a negative
	// number if it could not be read. TEXT_BYTES of each text follow.
	long long values[];
};
