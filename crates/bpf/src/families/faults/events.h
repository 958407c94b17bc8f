// Events about page faults on mapped files.
#pragma once

#include "bpf/event.h"

enum faults_kind {
	EVENT_FAULT = 8, // a page fault on a mapped file was served
};

// Of event_header.flags, for EVENT_FAULT.
enum fault_flag {
	FAULT_MAJOR = 1,   // the page had to be waited for
	FAULT_WRITE = 2,
	FAULT_FETCH = 4,   // of an instruction
	FAULT_SHARED = 8,  // what is written reaches the file
	FAULT_MAPPED = 16, // the page was mapped already, but not for what was tried
	FAULT_IN_CALL = 32, // the kernel touched the page, for a system call
	FAULT_COUNTED = 64, // `brought_in_pages` is known
};

struct fault_event {
	struct event_header header;
	unsigned long long start_ns; // CLOCK_MONOTONIC
	unsigned long long duration_ns;
	unsigned int tid;
	unsigned int around_pages; // that were offered to be mapped at once, from `around_page` on; 0: not known, or none
	unsigned long long address;
	unsigned long long file;
	unsigned long long offset;      // of the page in the file [B]
	unsigned long long around_page; // number of the page in the file
	unsigned int brought_in_pages;  // that were mapped by it
	unsigned int pad;
};
