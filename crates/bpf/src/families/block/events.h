// Events about requests to block devices, from their way into a queue to their completion.
#pragma once

#include "bpf/event.h"

enum block_kind {
	EVENT_BLOCK = 23, // a request to a block device is completed
};

// Of block_event.flags.
enum block_flag {
	BLOCK_SYNC = 1,     // a thread waits for it, or will
	BLOCK_META = 2,     // what the file system notes for itself
	BLOCK_AHEAD = 4,    // by read-ahead
	BLOCK_FUA = 8,      // done when it is on the medium, not only in the cache of the device
	BLOCK_PREFLUSH = 16, // after all that the cache of the device holds
	BLOCK_MEMORY = 32,  // its pages are in no page cache
	BLOCK_DEVICE = 64,  // they are of a block device, not of a file
	BLOCK_FOREIGN = 128, // queued by a program that is not recorded
	BLOCK_UNSEEN = 256, // it was queued before recording began
};

struct block_event {
	struct event_header header;
	unsigned long long at_ns; // completed; CLOCK_MONOTONIC
	unsigned long long queued_ns, issued_ns;
	unsigned long long sector; // of 512 bytes; ~0: none
	unsigned long long file;   // id of the one whose pages it carries; 0: not reported yet, or none
	unsigned long long inode;  // by which a path event may report it later; 0: none
	unsigned int inode_device; // of the inode: major << 20 | minor
	unsigned int bytes;
	unsigned int operation; // as the kernel numbers them (enum req_op)
	unsigned int flags;
	int error; // as the kernel numbers them (blk_status_t); below 0: as programs get them; 0: none
	unsigned int tid;   // who queued it; 0: none that is recorded
	unsigned int depth; // requests that the device had when it was issued, this one included; 0: not known
	unsigned int pad;
	char device[32]; // name
};
