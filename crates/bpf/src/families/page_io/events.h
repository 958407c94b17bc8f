// Events about requests to block devices for pages.
#pragma once

#include "bpf/event.h"

enum cache_kind {
	EVENT_PAGE_IO = 9, // a request to a block device for pages
};

// Flags of event_header.flags for EVENT_PAGE_IO.
enum page_io_flag {
	PAGE_IO_WRITE = 1,
	PAGE_IO_AHEAD = 2,  // by read-ahead
	PAGE_IO_DEVICE = 4, // the pages are of a block device, not of a file: usually metadata of the file system
	PAGE_IO_MEMORY = 8, // the pages are not in the page cache
};

struct page_io_event {
	struct event_header header;
	unsigned long long at_ns;
	unsigned long long file;  // id of the file; 0: not reported yet, or none
	unsigned long long inode; // inode of the file, by which a path event may report it later
	long long offset;         // offset in the file [B]; -1: none, or not contiguous
	unsigned int device;      // device of the inode: major << 20 | minor
	unsigned int bytes;
	unsigned int tid; // 0: none that is recorded
	unsigned int pad;
};
