// What the user side says of each probe: what its arguments are, and where. `attach.rs` writes it.
#pragma once

#include "bpf/kernel.h"
#include <bpf/bpf_helpers.h>

#define MOST_PROBES 256
#define MOST_ARGUMENTS 6
#define TEXT_BYTES 128

enum argument_kind {
	ARGUMENT_VALUE = 0,
	ARGUMENT_TEXT = 1,      // the address of a text of the program
	ARGUMENT_TEXT_FAR = 2,  // a tracepoint's: the lower half says where in its data the text lies (__data_loc)
	ARGUMENT_TEXT_HERE = 3, // a tracepoint's: the text lies there
};

struct argument {
	u16 offset; // of a tracepoint: in its data
	u8 bytes;   // of a tracepoint: 1, 2, 4 or 8
	u8 kind;
};

struct probe {
	u32 arguments;
	u32 texts; // how many of them are texts
	struct argument argument[MOST_ARGUMENTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MOST_PROBES);
	__type(key, u32);
	__type(value, struct probe);
} probes SEC(".maps");
