// What the user side sets before a program is loaded; constants for the verifier, which leaves out what they rule out. The same layout
// stands in `config.rs`.
#pragma once

#include "kernel.h"
#include <bpf/bpf_helpers.h>

#define CALLS 512
#define NONE 0xff
// Stands for what an io_uring does and no system call.
#define RING_CALL 511

enum target { TARGET_ALL, TARGET_CGROUP, TARGET_PROCESSES };
enum stacks { STACKS_OFF, STACKS_ALL, STACKS_SLOWER, STACKS_EVERY };

// What stands in which argument, 0xff: nowhere. Filled in from the list of system calls before loading.
enum shape_flag {
	SHAPE_NEW_FD = 1,      // the result is a descriptor: the file is its own
	SHAPE_POSITION = 2,    // moves the file position; an offset argument of -1 means it too
	SHAPE_VECTOR = 4,      // `count` is an array of buffers; their number is in the argument after it
	SHAPE_OFFSET_POINTER = 8, // offset arguments point to offsets
	SHAPE_FILE_BEFORE = 16, // the file is looked up at entry: it is gone at the return
	SHAPE_PAIR = 32,       // argument `second_fd` points to two new descriptors
	SHAPE_RENAMES = 64,
	SHAPE_MAPPING = 128,
	SHAPE_EXEC = 256,      // where it succeeds, its arguments are gone
	SHAPE_MESSAGE = 512,   // `count` points to a message header, which names the array of buffers
	SHAPE_HOW = 1024,      // `count` points to a structure that begins with what is meant
	SHAPE_SUBMIT = 2048,   // io_submit
	SHAPE_REAP = 4096,     // io_getevents
	SHAPE_STACK = 8192,    // its stack is wanted, where stacks are
	SHAPE_MESSAGES = 16384, // `count` is an array of message headers, each with its bytes; the result is their number
	SHAPE_BY_COMMAND = 32768, // fsconfig and landlock_add_rule: argument 1 says what the others are
};

struct shape {
	u16 flags;
	u8 recorded;
	u8 fd, count, offset, second_fd, second_offset;
	u8 directory, path, second_directory, second_path;
};

struct config {
	u64 target_cgroup;
	u64 secret; // ids of files would reveal kernel addresses without it
	u64 pid_namespace; // the recorder's, by its inode number; 0: the first one, whose numbers tasks have in `pid` and `tgid`
	u32 target;
	u32 recorder_pid; // the recorder does not record itself
	u32 ring_mask;    // size of a ring - 1
	u32 wait_above;   // events wait where a ring has more [B] than this; 0: they never do
	u64 stacks_slower_ns; // STACKS_SLOWER
	u32 stacks_every;     // STACKS_EVERY
	u32 stacks;           // of which calls
	u32 layouts;          // whether events report what code lies where: for stacks of calls, or of samples
	u32 pad;
	struct shape shapes[CALLS];
	u16 compat[CALLS]; // of 32-bit programs: see compat.h
};

const volatile struct config config SEC(".rodata.config") = {};
