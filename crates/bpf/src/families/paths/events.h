// Events with paths of files.
#pragma once

#include "bpf/event.h"

enum paths_kind {
	EVENT_PATH = 2, // path of a file that other events name by its id; before or after the first event that names it
};

enum path_flag {
	PATH_DELETED = 1, // its name is no longer in a directory
	PATH_CUT = 2,     // more components, or longer ones, than fit: the part at the root is missing
	PATH_NO_DIRECTORY = 4, // a pipe, a socket, a memory file: `names` is the kernel's description
};

struct path_event {
	struct event_header header;
	unsigned long long id;
	unsigned long long inode;
	unsigned int device;     // major << 20 | minor
	unsigned short mode;     // of the inode: kind and permissions
	unsigned short flags;    // path_flag
	unsigned int magic;      // magic number of the file system, as in statfs
	unsigned short length;   // bytes of `names`
	unsigned short count;    // number of names
	unsigned long long size; // of the file [B], when the event was written
	char names[];            // from the leaf to the root: a byte with the length, then the name; padded to 8
};
