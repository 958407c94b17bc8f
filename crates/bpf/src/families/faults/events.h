// Events about page faults on mapped files.
#pragma once

#include "bpf/event.h"

enum faults_kind {
	EVENT_FAULT = 8, // a page fault on a mapped file was handled
};

// Flags of event_header.flags for EVENT_FAULT.
enum fault_flag {
	FAULT_MAJOR = 1,   // the thread waited for the page
	FAULT_WRITE = 2,
	FAULT_FETCH = 4,   // fetch of an instruction
	FAULT_SHARED = 8,  // writes reach the file
	FAULT_MAPPED = 16, // the page was mapped already, but not for this access
	FAULT_IN_CALL = 32, // a system call accessed the page
	FAULT_COUNTED = 64, // `brought_in_pages` is known
};

struct fault_event {
	struct event_header header;
	unsigned long long start_ns; // CLOCK_MONOTONIC
	unsigned long long duration_ns;
	unsigned int tid;
	unsigned int around_pages; // number of pages that were offered for mapping, from `around_page` on; 0: unknown, or none
	unsigned long long address;
	unsigned long long file;
	unsigned long long offset;      // offset of the page in the file [B]
	unsigned long long around_page; // number of the page in the file
	unsigned int brought_in_pages;  // number of pages that were mapped
	unsigned int pad;
};
