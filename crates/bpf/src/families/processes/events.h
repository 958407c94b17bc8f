// Events about threads and processes: births, programs, ends, signals.
#pragma once

#include "bpf/event.h"

enum processes_kind {
	EVENT_FORK = 3, // a process or thread was created
	EVENT_EXEC = 4, // a process runs another program
	EVENT_EXIT = 5, // a thread ended
	EVENT_SIGNAL = 6, // a signal was delivered to a thread
	EVENT_TASK = 7, // a thread that existed when recording began (written by the user side, from /proc)
};

struct fork_event {
	struct event_header header;
	unsigned long long at_ns;
	unsigned int parent_tid, parent_pid;
	unsigned int tid, pid; // pid: thread group
	unsigned int user_id;  // real user id, of the initial user namespace; also below
	unsigned int pad;
	char comm[16];
};

struct exec_event {
	struct event_header header;
	unsigned long long at_ns;
	unsigned int tid, pid;
	unsigned int old_tid;          // id of the thread that called exec, which gets the id of the first thread
	unsigned short filename_length; // length of the path given to exec, at the start of `text` [B]
	unsigned short arguments_length; // length of the arguments after it [B], each terminated by NUL; cut at 1,024
	unsigned int user_id;
	unsigned int pad;
	char comm[16];
	char text[]; // padded to 8
};

struct exit_event {
	struct event_header header;
	unsigned long long at_ns;
	unsigned int tid, pid;
	unsigned int status;     // as returned by wait
	unsigned int last;       // 1: last thread of the process
	unsigned int user_id;
	unsigned int pad;
	unsigned long long user_ns, system_ns;     // of the thread, by the kernel's clock tick: only their ratio is accurate
	unsigned long long minor_faults, major_faults;
	unsigned long long read_chars, write_chars, read_calls, write_calls; // of the thread, as in /proc/PID/io
	unsigned long long read_bytes, write_bytes, cancelled_bytes;
	unsigned long long cpu_ns; // exact sum of both
	char comm[16];             // name of the thread
};

struct signal_event {
	struct event_header header;
	unsigned long long at_ns;
	unsigned int tid;
	int signal;
	int code;
	unsigned int sender_pid;
};

struct task_event {
	struct event_header header;
	unsigned long long started_ns; // CLOCK_MONOTONIC
	unsigned int tid, pid, parent_pid;
	unsigned int user_id; // 0xffffffff: unknown
	unsigned short arguments_length;
	unsigned short pad[3];
	char comm[16];
	char arguments[]; // each terminated by NUL; padded to 8
};
