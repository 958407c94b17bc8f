// What the programs of `sysdock agent` add up for each account: a job, a unit of systemd, a container. `build.rs` makes the Rust side.
#pragma once

#define JOB_TEXT_BYTES 64
#define GROUP_PATH_BYTES 256

// What calls do with files; places in `call_counts.calls`.
enum call_kind {
	KIND_READ,
	KIND_WRITE,
	KIND_OPEN,
	KIND_CREATE, // an open that made the file
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

// Whose calls they are. The job is what the environment says; empty: nothing.
struct account_key {
	char job[64];
	unsigned long long cgroup; // id of its control group (version 2)
	unsigned int uid;
	unsigned int scheduler; // number of the entry of `variables` that named the job
};

struct account {
	char name[64]; // of the job
	unsigned long long begun_ns; // since the machine was started
	unsigned int id; // from 1 on; never used again
	unsigned int pid; // of its first process that was seen
	char comm[16];
};

struct call_key {
	unsigned int account;
	unsigned int device; // of the file system: major << 20 | minor
};

// Since the account began; never set back.
struct call_counts {
	unsigned long long calls[12];
	unsigned long long read_bytes, written_bytes;
	unsigned long long errors;
	unsigned long long time_ns;
	unsigned long long wait_ns; // of it, off the CPU, without the time in which it could run
};

// What ended threads had used.
struct ended_counts {
	unsigned long long cpu_ns, cpu_wait_ns;
	unsigned long long minor_faults, major_faults;
	unsigned long long disk_read_bytes, disk_written_bytes;
	unsigned long long processes;
	unsigned long long largest_bytes; // resident, of one process
	unsigned long long last_ns;
};

// A thread that lives.
struct live_counts {
	unsigned int account;
	unsigned int is_first; // of its process
	unsigned long long cpu_ns, cpu_wait_ns;
	unsigned long long minor_faults, major_faults;
	unsigned long long disk_read_bytes, disk_written_bytes;
	unsigned long long resident_bytes, largest_bytes; // of the process, in its first thread
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

// Where a file lies. Flags and names as in `path_event`.
struct job_file_name {
	struct job_file_key key;
	unsigned short flags;
	unsigned short count;
	unsigned int length;
};

// A variable of the environment that says something of a job: its name with the `=`, padded with zeros, and which bits of it count.
struct job_variable {
	unsigned long long name[3];
	unsigned long long mask[3];
	unsigned int length;
	unsigned int meaning; // enum job_meaning
	unsigned int scheduler; // a bit
	unsigned int needs; // bits of `scheduler` of markers without which it means nothing
};

// MEANS_OUTSIDE: of a process of root, that it works for no job, whatever else its environment has: it is an epilogue.
enum job_meaning { MEANS_NOTHING, MEANS_ID, MEANS_NAME, MEANS_MARKER, MEANS_OUTSIDE };
