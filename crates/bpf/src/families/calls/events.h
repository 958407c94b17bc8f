// Events about system calls, and about operations that they begin and end.
#pragma once

#include "bpf/event.h"

enum calls_kind {
	EVENT_CALL = 1, // a system call, at its return
	EVENT_AIO_SUBMIT = 20, // an operation of libaio begins
	EVENT_AIO_DONE = 21, // its result was taken
};

// Of event_header.flags, for EVENT_CALL. What a flag announces follows the fixed part, in this order.
enum call_flag {
	CALL_SECOND_FILE = 1, // struct call_second_file
	CALL_MAPPING = 8,     // struct call_mapping
	CALL_STACK = 32,      // u64: id of the stack
	CALL_PATH = 2,        // struct call_path: the path argument
	CALL_SECOND_PATH = 4, // struct call_path: the other path of rename, link, symlink
	CALL_NO_START = 16,   // its start was not seen: start_ns is that of its return
	CALL_UNFINISHED = 64, // it never returned: the thread ended in it, as in exit_group
	CALL_RING = 128,      // no system call of its own: submitted to an io_uring; the number is that of the call which does the same
};

// Of call_event.duration_ns_and_number, in the lower 16 bits.
enum call_number {
	CALL_NUMBER = 0x7fff, // the number of the call; of larger ones this
	// More is reported of file positions. Without a second file: the offset argument, which could have named a place, meant the position. With
	// one: call_second_file.at_position says so, and is there.
	CALL_POSITIONS = 0x8000,
};

// Of call_second_file.at_position.
enum position_flag {
	POSITION_OF_FIRST = 1, // the offset of the first file is that of its file position, which moves on
	POSITION_OF_SECOND = 2,
};

struct call_event { // 64 B and what the flags announce
	struct event_header header;
	unsigned long long start_ns;               // CLOCK_MONOTONIC
	unsigned long long duration_ns_and_number; // duration << 16 | call_number: on x86-64
	unsigned int tid;
	int fd;                  // the descriptor worked on, for calls that make one the new one; -1: none
	long long result;
	unsigned long long file; // id of the object worked on, after the call where it makes one; 0: none
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

struct call_path { // as the program gave it; the block is padded to 8
	unsigned long long base; // id of the directory that a relative path starts from; 0: not known
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
	unsigned long long start_ns; // its entry
	unsigned long long context;  // what io_setup gave
	unsigned long long block;    // address of the control block: with the context, the operation's name
	unsigned long long file;     // its id
	long long offset;            // -1: none
	long long bytes;             // requested; -1: no transfer, or not known
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
	unsigned int tid; // who took it
	unsigned int pad;
};
