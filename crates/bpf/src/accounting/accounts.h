// Sums of the programs of `sysdock agent` for each account: a job, a unit of systemd, a container.
// `build.rs` generates the Rust side.
#pragma once

#define JOB_TEXT_BYTES 64
#define GROUP_PATH_BYTES 256

// Kinds of calls on files; indices of `call_counts.calls`.
enum call_kind {
	KIND_READ,
	KIND_WRITE,
	KIND_OPEN,
	KIND_CREATE, // an open that created the file
	KIND_CLOSE,
	KIND_STAT,
	KIND_READDIR,
	KIND_REMOVE,
	KIND_RENAME,
	KIND_MAKE, // directories, links, special files
	KIND_ATTRIBUTE,
	KIND_SYNC,
	KIND_COPY, // counted as a read of one file and a write of the other
	KIND_NONE,
};

// Key of an account. `job` is the job that the environment names; empty: none.
struct account_key {
	char job[64];
	unsigned long long cgroup; // id of its control group (version 2)
	unsigned int uid;
	unsigned int scheduler; // index in `variables` of the entry that named the job
};

struct account {
	char name[64]; // name of the job
	unsigned long long begun_ns; // since the machine was started
	unsigned int id; // counted from 1; never reused
	unsigned int pid; // first process that was seen
	char comm[16];
};

struct call_key {
	unsigned int account;
	unsigned int device; // device of the file system: major << 20 | minor
};

// Sums since the account began; never reset.
struct call_counts {
	unsigned long long calls[12];
	unsigned long long read_bytes, written_bytes;
	unsigned long long errors;
	unsigned long long time_ns;
	unsigned long long wait_ns; // part of the time off the CPU, without the time in which the thread was runnable
};

// What a thread has used so far: COUNTER(name, value of `struct task_struct *task`). Each is a column of
// job_samples with the same name (knowhow/tables), and nothing else needs to know it.
#define THREAD_COUNTERS(COUNTER)                                                                       \
	COUNTER(cpu_ns, task->se.sum_exec_runtime)                                                     \
	COUNTER(cpu_wait_ns, run_delay(task))                                                          \
	COUNTER(minor_faults, task->min_flt)                                                           \
	COUNTER(major_faults, task->maj_flt)                                                           \
	COUNTER(disk_read_bytes, bpf_core_field_exists(task->ioac.rchar) ? task->ioac.read_bytes : 0)  \
	COUNTER(disk_written_bytes, bpf_core_field_exists(task->ioac.rchar) ? task->ioac.write_bytes : 0)

#define DECLARE_COUNTER(name, value) unsigned long long name;
struct thread_counters {
	THREAD_COUNTERS(DECLARE_COUNTER)
};

// Resources used by threads that have ended.
struct ended_counts {
	struct thread_counters used;
	unsigned long long processes;
	unsigned long long largest_bytes; // greatest resident size of one process
	unsigned long long last_ns;
};

// A running thread.
struct live_counts {
	unsigned int account;
	unsigned int is_first; // first thread of its process
	struct thread_counters used;
	unsigned long long resident_bytes, largest_bytes; // resident size of the process, in its first thread
};

// A file that an account used.
struct job_file_key {
	unsigned long long inode;
	unsigned int device;
	unsigned int generation;
	unsigned int account;
	unsigned int pad;
};

struct job_file_counts {
	unsigned long long calls;
	unsigned long long read_bytes, written_bytes;
	unsigned long long time_ns;
	unsigned int is_named;
	unsigned int pad;
};

// The path of a file. Flags and names as in `path_event`.
struct job_file_name {
	struct job_file_key key;
	unsigned short flags;
	unsigned short count;
	unsigned int length;
};

// A variable of the environment that describes a job: its name with the `=`, padded with zeros, and
// a mask of the bits that are compared.
struct job_variable {
	unsigned long long name[3];
	unsigned long long mask[3];
	unsigned int length;
	unsigned int meaning; // enum job_meaning
	unsigned int scheduler; // a bit
	unsigned int needs; // bits of `scheduler` of markers that are required; without them it means nothing
};

// MEANS_OUTSIDE: a process of root with this variable works for no job, whatever else is in its
// environment: it is an epilogue.
enum job_meaning { MEANS_NOTHING, MEANS_ID, MEANS_NAME, MEANS_MARKER, MEANS_OUTSIDE };
