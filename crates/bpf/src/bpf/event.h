// The header of every event. The rest of an event depends on its kind and is defined in `events.h`
// of its family, the only definition of its layout: `build.rs` generates the Rust side from the
// compiler's description of these structures and enums.
//
// Numbers are little-endian, and all lengths are multiples of 8. A reader skips unknown kinds. A
// kind is a number that no other family has.
//
// The ring of a CPU contains events one after another; the spool contains the same bytes. An event
// is complete when its `position`, which is stored last, equals its position in the ring (the low
// half of the number of bytes written before it).
#pragma once

struct event_header {
	unsigned int position;
	unsigned short length; // length of the whole event [B]
	unsigned char kind;
	unsigned char flags;
};

// In place of the number of a system call, if a thread is in none.
enum no_call {
	CALL_NONE = -1,
	CALL_NEVER = -2, // a thread of the kernel
};

// Flags of event_header.flags for a sum.
enum sums_flag {
	SUMS_BEFORE = 1, // the value when the recording began; later values are counted from it
};

// A sum of a family, from a map in which its programs add up: the value and the key follow the
// fixed part. The user side writes it again when the value has changed; the last one counts.
struct sums_event {
	struct event_header header;
	unsigned long long at_ns; // when it was read, CLOCK_MONOTONIC
};
