// Events about locks of the kernel that a thread had to wait for.
#pragma once

#include "bpf/event.h"

enum locks_kind {
	EVENT_LOCK_WAIT = 14, // a thread has got a lock that it waited for
	EVENT_LOCK = 15,      // where a lock lies; before the first wait for it, and again from time to time
};

// Of event_header.flags, for EVENT_LOCK_WAIT. The first six are those of the tracepoint (include/trace/events/lock.h).
enum lock_wait_flag {
	LOCK_SPIN = 1, // it does not sleep meanwhile
	LOCK_READ = 2,
	LOCK_WRITE = 4,
	LOCK_RT = 8,
	LOCK_PERCPU = 16,
	LOCK_MUTEX = 32,
	LOCK_NESTED = 64,  // a part of another wait of the thread: for a lock that keeps the list of those that wait
	LOCK_GIVEN_UP = 128, // it did not get the lock
};

struct lock_wait_event {
	struct event_header header;
	unsigned long long at_ns; // CLOCK_MONOTONIC; when it had the lock
	unsigned long long lock;  // its address
	unsigned long long wait_ns;
	unsigned int tid;
	unsigned int holder_tid; // who had the lock when the wait began; 0: not known
	char holder[16];
	unsigned short cpu;
	short call; // number of the system call that it is in; -1: none
	unsigned int pad;
	unsigned long long frames[]; // addresses of functions of the kernel, the innermost first
};

enum lock_region {
	LOCK_ELSEWHERE,
	LOCK_IN_SLAB,   // in an object of a slab cache
	LOCK_STATIC,    // in the kernel's own image, or a module's
	LOCK_RUN_QUEUE, // of a CPU
};

struct lock_event {
	struct event_header header;
	unsigned long long lock;
	unsigned long long at_ns;
	unsigned int region; // lock_region
	unsigned int cpu;    // LOCK_RUN_QUEUE
	// LOCK_IN_SLAB: the distance of objects and where they begin in it [B], the orders of pages that slabs of the cache have, its name.
	unsigned int object_bytes;
	unsigned int object_start;
	unsigned int order;
	unsigned int least_order;
	char cache[32];
};
