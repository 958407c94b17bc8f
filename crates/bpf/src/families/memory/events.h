// Events about memory that the kernel allocates: sums by call site, and each time that a thread had to wait for memory.
#pragma once

#include "bpf/event.h"

enum memory_kind {
	EVENT_ALLOCATIONS = 27, // a sum of allocations (see sums_event)
	EVENT_MEMORY_STALL = 28, // a thread has freed memory itself before it got some, or was chosen to be killed
};

// Of allocation_site.what.
enum allocation_flag {
	ALLOCATION_KMALLOC = 1,
	ALLOCATION_CACHE = 2,
	ALLOCATION_PAGES = 3,
	ALLOCATION_FREE = 4, // added to one of these: it was given back
};

#define PAGE_FRAMES 8

// The key of a sum.
struct allocation_site {
	unsigned long long call_site;  // the address after the call; ALLOCATION_PAGES: a hash of the frames
	unsigned long long cache;      // ALLOCATION_CACHE: its address
	unsigned long long started_ns; // when the process began: numbers of processes are used again
	unsigned int pid;
	unsigned int what;
	unsigned int given_bytes; // for each; ALLOCATION_CACHE: 0, see below; not known where kmalloc's are freed: 0
	unsigned int pad;
};

// Its value. What follows the first two numbers is set with the first of them and stays.
struct allocation_count {
	unsigned long long number;
	unsigned long long asked_bytes; // ALLOCATION_KMALLOC; of others it follows from their number
	unsigned long long first_ns;    // CLOCK_MONOTONIC
	unsigned int object_bytes;      // ALLOCATION_CACHE: what its users see of each, and what each takes
	unsigned int slot_bytes;
	char cache[32];
	unsigned long long frames[PAGE_FRAMES]; // ALLOCATION_PAGES: addresses of functions of the kernel, the innermost first
};

struct allocation_event { // a sums_event
	struct event_header header;
	unsigned long long at_ns;
	struct allocation_count count;
	struct allocation_site site;
};

// In event_header.flags, for EVENT_MEMORY_STALL.
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
	long long pages;    // that were reclaimed; -1: not of this kind
	unsigned int tid;   // STALL_OOM_KILL: who is killed
	unsigned int order; // of the allocation that waits, 2^order pages
	short call;         // number of the system call that it is in; -1: none
	unsigned short pad;
	unsigned int pad2;
};
