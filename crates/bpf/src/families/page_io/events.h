// Events about requests to block devices, for pages.
#pragma once

#include "bpf/event.h"

enum cache_kind {
	EVENT_PAGE_IO = 9, // a request to a block device, for pages
};

// Of event_header.flags, for EVENT_PAGE_IO.
enum page_io_flag {
	PAGE_IO_WRITE = 1,
	PAGE_IO_AHEAD = 2,  // by read-ahead
	PAGE_IO_DEVICE = 4, // the pages are of a block device, not of a file: as a rule what the file system notes for itself
	PAGE_IO_MEMORY = 8, // they are in no page cache
};

struct page_io_event {
	struct event_header header;
	unsigned long long at_ns;
	unsigned long long file;  // its id; 0: not reported yet, or none
	unsigned long long inode; // by which a path event may report it later
	long long offset;         // in the file [B]; -1: none, or not in one piece
	unsigned int device;      // of the inode: major << 20 | minor
	unsigned int bytes;
	unsigned int tid; // 0: none that is recorded
	unsigned int pad;
};
