// Events about kernel locks that a thread had to wait for.
#pragma once

#include "bpf/event.h"

enum locks_kind {
	EVENT_LOCK_WAIT = 14, // a thread has acquired a lock that it waited for
	EVENT_LOCK = 15,      // location of a lock; before the first wait for it, and again from time to time
};

// Flags of event_header.flags for EVENT_LOCK_WAIT. The first six are those of the tracepoint
// (include/trace/events/lock.h).
enum lock_wait_flag {
	LOCK_SPIN = 1, // spins instead of sleeping
	LOCK_READ = 2,
	LOCK_WRITE = 4,
	LOCK_RT = 8,
	LOCK_PERCPU = 16,
	LOCK_MUTEX = 32,
	LOCK_NESTED = 64,  // part of another wait of the thread: for the lock of the list of waiters
	LOCK_GIVEN_UP = 128, // it did not get the lock
};

struct lock_wait_event {
	struct event_header header;
	unsigned long long at_ns; // CLOCK_MONOTONIC; time of acquisition
	unsigned long long lock;  // address of the lock
	unsigned long long wait_ns;
	unsigned int tid;
	unsigned int holder_tid; // thread that held the lock when the wait began; 0: unknown
	char holder[16];
	unsigned short cpu;
	short call; // number of the current system call; -1: none
	unsigned int pad;
	unsigned long long frames[]; // addresses of functions of the kernel, innermost first
};

enum lock_region {
	LOCK_ELSEWHERE,
	LOCK_IN_SLAB,   // in an object of a slab cache
	LOCK_STATIC,    // in the image of the kernel or of a module
	LOCK_RUN_QUEUE, // of the run queue of a CPU
};

struct lock_event {
	struct event_header header;
	unsigned long long lock;
	unsigned long long at_ns;
	unsigned int region; // lock_region
	unsigned int cpu;    // LOCK_RUN_QUEUE
	// LOCK_IN_SLAB: the distance between objects and their start in it [B], the page orders of
	// the cache's slabs, its name.
	unsigned int object_bytes;
	unsigned int object_start;
	unsigned int order;
	unsigned int least_order;
	char cache[32];
};
