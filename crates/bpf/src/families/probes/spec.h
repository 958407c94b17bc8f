// Specification of each probe by the user side: its arguments and their locations. `attach.rs`
// writes it.
#pragma once

#include "bpf/kernel.h"
#include <bpf/bpf_helpers.h>

#define MOST_PROBES 256
#define MOST_ARGUMENTS 6
#define TEXT_BYTES 128

enum argument_kind {
	ARGUMENT_VALUE = 0,
	ARGUMENT_TEXT = 1,      // the address of a text in the program
	ARGUMENT_TEXT_FAR = 2,  // tracepoints only: the lower half is the offset of the text in the event data (__data_loc)
	ARGUMENT_TEXT_HERE = 3, // tracepoints only: the text is at the offset
};

struct argument {
	u16 offset; // tracepoints only: offset in the event data
	u8 bytes;   // tracepoints only: 1, 2, 4 or 8
	u8 kind;
};

struct probe {
	u32 arguments;
	u32 texts; // number of arguments that are texts
	struct argument argument[MOST_ARGUMENTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MOST_PROBES);
	__type(key, u32);
	__type(value, struct probe);
} probes SEC(".maps");
