// What every event begins with. What follows is particular to its kind and stands in `events.h` of the family that it belongs to: the
// only place where a layout is written. `build.rs` makes the Rust side of it from what the compiler says of these structures and enums.
//
// Little-endian, all lengths multiples of 8. A reader skips kinds it does not know. A kind is a number below 32 that no other family has.
//
// The ring of a CPU holds events one after another; the spool holds the same bytes. An event is complete when its `position` is
// that of the place in the ring where it stands (the low half of the count of bytes written before it): it is stored last.
#pragma once

struct event_header {
	unsigned int position;
	unsigned short length; // of the whole event [B]
	unsigned char kind;
	unsigned char flags;
};

// In place of the number of a system call, where a thread is in none.
enum no_call {
	CALL_NONE = -1,
	CALL_NEVER = -2, // a thread of the kernel
};

// In event_header.flags of a sum.
enum sums_flag {
	SUMS_BEFORE = 1, // what it was when the recording began: later values count from there on
};

// A sum of a family, from a map where its programs add up: after the fixed part stand the value and the key. The user side writes it
// again when the value has changed; the last one counts.
struct sums_event {
	struct event_header header;
	unsigned long long at_ns; // when it was read, CLOCK_MONOTONIC
};
