// Settings of the user side, made before a program is loaded. They are constants for the verifier,
// which removes unused branches. `config.rs` has the same layout.
#pragma once

#include "kernel.h"
#include <bpf/bpf_helpers.h>

#define CALLS 512
#define NONE 0xff
// In place of a call number: an operation of io_uring that corresponds to no system call.
#define RING_CALL 511

enum target { TARGET_ALL, TARGET_CGROUP, TARGET_PROCESSES };
enum stacks { STACKS_OFF, STACKS_ALL, STACKS_SLOWER, STACKS_EVERY };

// The index of each argument by its meaning, 0xff: none. Filled in from the list of system calls
// before loading.
enum shape_flag {
	SHAPE_NEW_FD = 1,      // the result is a descriptor, which names the file
	SHAPE_POSITION = 2,    // moves the file position, also with an offset argument of -1
	SHAPE_VECTOR = 4,      // `count` is an array of buffers; the next argument is their number
	SHAPE_OFFSET_POINTER = 8, // offset arguments point to offsets
	SHAPE_FILE_BEFORE = 16, // the file is looked up at entry, because it is closed at the return
	SHAPE_PAIR = 32,       // argument `second_fd` points to two new descriptors
	SHAPE_RENAMES = 64,
	SHAPE_MAPPING = 128,
	SHAPE_EXEC = 256,      // if it succeeds, its arguments are gone
	SHAPE_MESSAGE = 512,   // `count` points to a message header, which names the array of buffers
	SHAPE_HOW = 1024,      // `count` points to a structure that begins with the value
	SHAPE_SUBMIT = 2048,   // io_submit
	SHAPE_REAP = 4096,     // io_getevents
	SHAPE_STACK = 8192,    // its stack is recorded, if stacks are
	SHAPE_MESSAGES = 16384, // `count` is an array of message headers, each with its number of bytes; the result is the number of messages
	SHAPE_BY_COMMAND = 32768, // fsconfig and landlock_add_rule: argument 1 determines the meaning of the others
};

struct shape {
	u16 flags;
	u8 recorded;
	u8 fd, count, offset, second_fd, second_offset;
	u8 directory, path, second_directory, second_path;
};

struct config {
	u64 target_cgroup;
	u64 secret; // hides kernel addresses in ids of files
	u64 pid_namespace; // inode number of the recorder's PID namespace; 0: the initial one, with the numbers in `pid` and `tgid`
	u32 target;
	u32 recorder_pid; // the recorder does not record itself
	u32 ring_mask;    // size of a ring - 1
	u32 wait_above;   // events wait if a ring is fuller than this [B]; 0: never
	u64 stacks_slower_ns; // STACKS_SLOWER
	u32 stacks_every;     // STACKS_EVERY
	u32 stacks;           // calls whose stacks are recorded
	u32 layouts;          // whether events report the location of code: for stacks of calls or of samples
	u32 pad;
	struct shape shapes[CALLS];
	u16 compat[CALLS]; // calls of 32-bit programs: see compat.h
};

const volatile struct config config SEC(".rodata.config") = {};
