// Events about memory that the kernel allocates: sums by call site, and each time that a thread had
// to wait for memory.
#pragma once

#include "bpf/event.h"

enum memory_kind {
	EVENT_ALLOCATIONS = 27, // a sum of allocations (see sums_event)
	EVENT_MEMORY_STALL = 28, // a thread has freed memory before it got some, or was chosen to be killed
};

// Values of allocation_site.what.
enum allocation_flag {
	ALLOCATION_KMALLOC = 1,
	ALLOCATION_CACHE = 2,
	ALLOCATION_PAGES = 3,
	ALLOCATION_FREE = 4, // flag added to one of these: freed
};

#define PAGE_FRAMES 8

// The key of a sum.
struct allocation_site {
	unsigned long long call_site;  // the return address; ALLOCATION_PAGES: a hash of the frames
	unsigned long long cache;      // ALLOCATION_CACHE: address of the cache
	unsigned long long started_ns; // start of the process: ids of processes are reused
	unsigned int pid;
	unsigned int what;
	unsigned int given_bytes; // size of each; 0 for ALLOCATION_CACHE (see below), and if it is unknown, as for freed memory of kmalloc
	unsigned int pad;
};

// The value of a sum. The fields after the first two numbers are set once, with the first
// allocation.
struct allocation_count {
	unsigned long long number;
	unsigned long long asked_bytes; // ALLOCATION_KMALLOC only; for others it follows from their number
	unsigned long long first_ns;    // CLOCK_MONOTONIC
	unsigned int object_bytes;      // ALLOCATION_CACHE: the size that users of the cache see, and the size that each object takes
	unsigned int slot_bytes;
	char cache[32];
	unsigned long long frames[PAGE_FRAMES]; // ALLOCATION_PAGES: addresses of functions of the kernel, innermost first
};

struct allocation_event { // a sums_event
	struct event_header header;
	unsigned long long at_ns;
	struct allocation_count count;
	struct allocation_site site;
};

// Kinds of EVENT_MEMORY_STALL, in event_header.flags.
enum memory_stall_flag {
	STALL_DIRECT = 1,     // direct reclaim
	STALL_GROUP = 2,      // reclaim at the limit of a memory control group
	STALL_NODE = 3,       // reclaim in a NUMA node
	STALL_COMPACTION = 4, // of one zone
	STALL_OOM_KILL = 5,
};

struct memory_stall_event {
	struct event_header header;
	unsigned long long at_ns; // when it ended, CLOCK_MONOTONIC
	unsigned long long begin_ns;
	long long pages;    // number of reclaimed pages; -1: not of this kind
	unsigned int tid;   // STALL_OOM_KILL: the thread that is killed
	unsigned int order; // order of the waiting allocation, 2^order pages
	short call;         // number of the current system call; -1: none
	unsigned short pad;
	unsigned int pad2;
};
