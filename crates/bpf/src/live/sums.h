// Sums of the programs of `sysdock top`, and counters that they read from the kernel. `build.rs`
// generates the Rust side, as for events.
#pragma once

#include "families/locks/events.h"

// A thread: the kernel's counters of it, and (`group_`) of the threads of its process that have
// ended.
struct task_counts {
	unsigned int tid;
	unsigned int pid;
	unsigned long long start_ns; // start of the process, since the machine was started
	unsigned long long cgroup;   // id of its control group (version 2)
	unsigned long long cpu_ns, group_cpu_ns;
	unsigned long long cpu_wait_ns; // runnable, but on no CPU
	unsigned long long switches, group_switches; // switches because it waited
	unsigned long long preemptions, group_preemptions; // switches because another thread was given its CPU
	unsigned long long major_faults, group_major_faults;
	unsigned long long read_bytes, group_read_bytes; // by system calls
	unsigned long long written_bytes, group_written_bytes;
	unsigned long long disk_read_bytes, group_disk_read_bytes;
	unsigned long long disk_written_bytes, group_disk_written_bytes;
	char comm[16];
};

// System calls of a process that have returned.
struct call_sum {
	unsigned long long calls;
	unsigned long long errors;
	unsigned long long time_ns;
};

// Key of a file, independent of its name.
struct file_key {
	unsigned long long inode;
	unsigned int device; // major << 20 | minor
	unsigned int generation;
};

struct file_sum {
	unsigned long long reads, writes, syncs;
	unsigned long long read_bytes, written_bytes;
	unsigned long long time_ns;
	unsigned int pid; // process that used it last
	char comm[16];
	unsigned int is_named; // its name was sent recently
};

// The path of a file. Flags and names as in `path_event`.
struct file_name {
	struct file_key key;
	unsigned short flags;
	unsigned short count;
	unsigned int length;
};

// Sums of a lock of the kernel.
struct lock_sum {
	unsigned long long waits;
	unsigned long long wait_ns;
	unsigned long long longest_ns;
	unsigned int flags; // lock_wait_flag
	unsigned int bytes; // size of the frames
	char waiter[16]; // thread with the longest wait
	char holder[16];
	unsigned long long frames[16];
	struct lock_event place;
};
