// Events about requests to block devices.
#pragma once

#include "bpf/event.h"

enum block_kind {
	EVENT_BLOCK = 23, // a request to a block device is completed
};

// Flags of block_event.flags.
enum block_flag {
	BLOCK_SYNC = 1,     // a thread waits for it
	BLOCK_META = 2,     // metadata of the file system
	BLOCK_AHEAD = 4,    // by read-ahead
	BLOCK_FUA = 8,      // completes when the data are on the medium, not only in the cache of the device
	BLOCK_PREFLUSH = 16, // flushes the cache of the device first
	BLOCK_MEMORY = 32,  // its pages are not in the page cache
	BLOCK_DEVICE = 64,  // its pages are of a block device, not of a file
	BLOCK_FOREIGN = 128, // queued by a program that is not recorded
	BLOCK_UNSEEN = 256, // queued before recording began
};

struct block_event {
	struct event_header header;
	unsigned long long at_ns; // time of completion; CLOCK_MONOTONIC
	unsigned long long queued_ns, issued_ns;
	unsigned long long sector; // in units of 512 bytes; ~0: none
	unsigned long long file;   // id of the file whose pages it carries; 0: not reported yet, or none
	unsigned long long inode;  // inode of the file, by which a path event may report it later; 0: none
	unsigned int inode_device; // device of the inode: major << 20 | minor
	unsigned int bytes;
	unsigned int operation; // the kernel's number (enum req_op)
	unsigned int flags;
	int error; // the kernel's number (blk_status_t); negative: an error number of programs; 0: none
	unsigned int tid;   // thread that queued it; 0: none that is recorded
	unsigned int depth; // number of requests in the device when it was issued, including this one; 0: unknown
	unsigned int pad;
	char device[32]; // name of the device
};
