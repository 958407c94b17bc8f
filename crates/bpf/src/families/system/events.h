// The kernel's counters of the whole machine, read by the recorder at regular intervals. No BPF
// program creates these events.
#pragma once

#include "bpf/event.h"

enum system_kind {
	EVENT_SYSTEM = 26, // contents of a file of /proc or of the control group
};

// Values of system_event.source.
enum system_source_flag {
	SYSTEM_STAT = 1,
	SYSTEM_LOAD = 2,
	SYSTEM_MEMORY = 3,
	SYSTEM_PAGING = 4,
	SYSTEM_DISKS = 5,
	SYSTEM_NETWORK = 6,
	SYSTEM_PRESSURE_CPU = 7,
	SYSTEM_PRESSURE_MEMORY = 8,
	SYSTEM_PRESSURE_IO = 9,
	SYSTEM_GROUP_CPU = 10,
	SYSTEM_GROUP_MEMORY = 11,
	SYSTEM_GROUP_PEAK = 12,
	SYSTEM_GROUP_EVENTS = 13,
	SYSTEM_GROUP_IO = 14,
};

struct system_event {
	struct event_header header;
	unsigned long long at_ns;   // CLOCK_MONOTONIC
	unsigned short source;
	unsigned short is_missing; // there is no such file
	unsigned int length;       // of the text
	char text[];               // the required lines
};
