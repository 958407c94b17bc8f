// Events about system calls, and about the operations that they submit and reap.
#pragma once

#include "bpf/event.h"

enum calls_kind {
	EVENT_CALL = 1, // a system call, at its return
	EVENT_AIO_SUBMIT = 20, // an operation of libaio begins
	EVENT_AIO_DONE = 21, // its result was taken
};

// Flags of event_header.flags for EVENT_CALL. The parts that the flags announce follow the fixed
// part in this order.
enum call_flag {
	CALL_SECOND_FILE = 1, // struct call_second_file
	CALL_MAPPING = 8,     // struct call_mapping
	CALL_STACK = 32,      // u64: id of the stack
	CALL_PATH = 2,        // struct call_path: the path argument
	CALL_SECOND_PATH = 4, // struct call_path: the other path of rename, link, symlink
	CALL_NO_START = 16,   // its start was not seen: start_ns is the time of its return
	CALL_UNFINISHED = 64, // it never returned: the thread ended in the call, as in exit_group
	CALL_RING = 128,      // not a system call, but an operation of io_uring; the number is that of the equivalent call
};

// The lower 16 bits of call_event.duration_ns_and_number.
enum call_number {
	CALL_NUMBER = 0x7fff, // the number of the call; greater ones are stored as this
	// The event has details of file positions. Without a second file: the offset argument meant
	// the position, although it could have been an offset. With a second file:
	// call_second_file.at_position is present.
	CALL_POSITIONS = 0x8000,
};

// Flags of call_second_file.at_position.
enum position_flag {
	POSITION_OF_FIRST = 1, // the offset of the first file is its file position, which the call moves
	POSITION_OF_SECOND = 2,
};

struct call_event { // 64 bytes, and the parts that the flags announce
	struct event_header header;
	unsigned long long start_ns;               // CLOCK_MONOTONIC
	unsigned long long duration_ns_and_number; // duration << 16 | call_number: on x86-64
	unsigned int tid;
	int fd;                  // the descriptor used, or created by the call; -1: none
	long long result;
	unsigned long long file; // id of the object used, or created by the call; 0: none
	long long offset;        // file position after the call, or the offset argument of positioned calls; -1: none
	unsigned long long extra; // bytes requested (transfers), flags (opens), length (truncate); 0: none
};

struct call_second_file { // of copies: the file written to; of two-ended calls (pipe, socketpair) the second object
	unsigned long long file;
	long long offset;
	// From here on with CALL_POSITIONS only.
	int fd;
	unsigned int at_position;
};

struct call_path { // as given by the program; the block is padded to 8
	unsigned long long base; // id of the directory that a relative path starts from; 0: unknown
	unsigned short length;   // [B], without the NUL; longer paths are cut at 4,095
	unsigned short flags;    // 1: could not be read
	unsigned int pad;
	char bytes[];
};

struct call_mapping { // of mmap
	unsigned long long length;
	unsigned long long offset;
	unsigned int protection;
	unsigned int flags;
};

struct aio_submit_event {
	struct event_header header;
	unsigned long long at_ns;    // return of io_submit
	unsigned long long start_ns; // entry of io_submit
	unsigned long long context;  // result of io_setup
	unsigned long long block;    // address of the control block, which identifies the operation within the context
	unsigned long long file;     // id of the file
	long long offset;            // -1: none
	long long bytes;             // bytes requested; -1: no transfer, or unknown
	unsigned int tid;
	int fd;
	unsigned int opcode; // IOCB_CMD_*
	unsigned int pad;
};

struct aio_done_event {
	struct event_header header;
	unsigned long long at_ns; // return of io_getevents
	unsigned long long context;
	unsigned long long block;
	long long result;
	unsigned int tid; // thread that reaped it
	unsigned int pad;
};
