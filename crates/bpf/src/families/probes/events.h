// Events at places that the user named: functions of programs, USDT probes and tracepoints.
#pragma once

#include "bpf/event.h"

enum probes_kind {
	EVENT_PROBE = 29, // after the stack of the program, where that is new
};

struct probe_event {
	struct event_header header;
	unsigned long long at_ns; // CLOCK_MONOTONIC
	unsigned long long stack; // of the program; 0: none
	unsigned int tid;
	unsigned short cpu;
	unsigned short probe; // its number among those of the recording
	// One for each argument; of a text its length with the NUL at its end, or below 0: it could not be read. After them TEXT_BYTES of
	// each text.
	long long values[];
};
