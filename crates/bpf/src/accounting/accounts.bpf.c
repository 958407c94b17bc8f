// Counts the use of files by jobs, units and containers, and the resources that their threads use.
//
// No events are sent: sums are kept in maps until they are read, so that a job of a millisecond is
// counted too. The sums only grow; readers compute differences.

#include "bpf/kernel.h"
#include "bpf/compat.h"
#include "bpf/ids.h"
#include "bpf/task.h"
#include "live/names.h"
#include "live/lost.h"
#include "accounts.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

extern void *bpf_rdonly_cast(const void *object, u32 type) __ksym __weak;

// Linux 6.2 and later: fields are read in place. Before that each one is copied, which takes four
// times as long.
#define typed(type, pointer) ((type *)bpf_rdonly_cast((pointer), bpf_core_type_id_kernel(type)))
#define reads_in_place() bpf_ksym_exists(bpf_rdonly_cast)

#define MOST_ACCOUNTS 16384
#define MOST_PROCESSES 65536
#define MOST_SUMS 32768
#define MOST_FILES 16384
#define MOST_GROUPS 4096
#define MOST_MOUNTS 4096
#define MOST_VARIABLES 16
#define ENVIRONMENT_STEPS 8192
#define MOUNT_BYTES 120
#define MOST_ERRORS 511 // codes from 512 on mean that the call is restarted
#define AT_FDCWD (-100)
#define FMODE_CREATED 0x100000
#define S_IFMT 0170000
#define S_IFBLK 0060000
#define S_IFDIR 0040000
#define S_IFREG 0100000
#define S_IFLNK 0120000
#define PAGE_BYTES 4096
#define RESIDENT_KINDS 4
#define SWAPPED 2

enum { BPF_MAP_TYPE_LPM_TRIE = 11 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct sched_info {
	u64 run_delay;
};

struct mnt_namespace___accounts {
	struct ns_common ns;
};

struct nsproxy___accounts {
	struct mnt_namespace___accounts *mnt_ns;
};

struct fs_struct___accounts {
	struct path root;
};

struct task_struct___accounts {
	struct sched_info sched_info;
	struct nsproxy___accounts *nsproxy;
	struct fs_struct___accounts *fs;
};

struct file___accounts {
	u32 f_mode;
};

struct signal_struct___accounts {
	unsigned long maxrss;
};

struct atomic64___before_6_2 {
	s64 counter;
};

struct mm_rss_stat___before_6_2 {
	struct atomic64___before_6_2 count[4];
};

struct mm_struct___before_6_2 {
	struct mm_rss_stat___before_6_2 rss_stat;
};

struct mm_struct___accounts {
	unsigned long env_start, env_end, hiwater_rss;
};

#pragma clang attribute pop

// Set before the programs are loaded: the kind of each call (`enum call_kind`) by its number, and
// the variables that name jobs.
struct settings {
	u64 mount_namespace;
	u8 kinds[CALLS];
	struct job_variable variables[MOST_VARIABLES];
};

const volatile struct settings settings SEC(".rodata.settings") = {};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_ACCOUNTS);
	__type(key, struct account_key);
	__type(value, struct account);
} accounts SEC(".maps");

struct process {
	u32 account;
	u32 has_job; // the environment named a job
};

// Processes by their numbers in the initial PID namespace.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_PROCESSES);
	__type(key, u32);
	__type(value, struct process);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_SUMS);
	__type(key, struct call_key);
	__type(value, struct call_counts);
} sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_ACCOUNTS);
	__type(key, u32);
	__type(value, struct ended_counts);
} ended SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_FILES);
	__type(key, struct job_file_key);
	__type(value, struct job_file_counts);
} files SEC(".maps");

// Number of calls whose file found no room in `files`; read together with it.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} files_left_out SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 21);
} names SEC(".maps");

// Paths of recently created control groups.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MOST_GROUPS);
	__type(key, u64);
	__type(value, char[GROUP_PATH_BYTES]);
} groups SEC(".maps");

struct mount_key {
	u32 bits;
	char path[MOUNT_BYTES];
};

// Devices of file systems by mount point.
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MOST_MOUNTS);
	__type(key, struct mount_key);
	__type(value, u32);
} mounts SEC(".maps");

// The number of the newest account.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} last_account SEC(".maps");

struct call {
	u64 from_ns, cpu_ns, delay_ns, switches, path;
	u64 inode;
	u32 device, generation;
	u32 second_device;
	u32 kind;
	int fd;
	u32 file_type;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct call);
} begun SEC(".maps");

struct name_and_path {
	struct job_file_name name;
	struct scratch_path path;
};

struct scratch {
	struct account_key key;
	struct account account;
	struct mount_key mount;
	u64 text[10]; // text of a variable
	struct live_counts live;
	struct name_and_path named;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

// Scratch memory of the iterator, which the other programs may interrupt.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch);
} iterator_scratches SEC(".maps");

static __always_inline struct scratch *scratch_of_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&scratches, &zero);
}

static __always_inline u64 run_delay(struct task_struct *task)
{
	struct task_struct___accounts *timed = (void *)task;

	return bpf_core_field_exists(timed->sched_info.run_delay) ? timed->sched_info.run_delay : 0;
}

// The number of the account with the key in the scratch; 0: there is no room.
static __noinline u32 account_of_key(struct scratch *scratch, struct task_struct *task)
{
	u32 zero = 0, *last;
	struct account *account;

	if (!scratch || !task)
		return 0;
	account = bpf_map_lookup_elem(&accounts, &scratch->key);
	if (account)
		return account->id;
	last = bpf_map_lookup_elem(&last_account, &zero);
	if (!last)
		return 0;
	scratch->account.begun_ns = bpf_ktime_get_ns();
	scratch->account.pid = BPF_CORE_READ(task, tgid);
	BPF_CORE_READ_INTO(&scratch->account.comm, task, comm);
	scratch->account.id = __sync_fetch_and_add(last, 1) + 1;
	if (bpf_map_update_elem(&accounts, &scratch->key, &scratch->account, BPF_NOEXIST)) {
		account = bpf_map_lookup_elem(&accounts, &scratch->key); // another CPU has created it
		if (!account)
			count_lost();
		return account ? account->id : 0;
	}
	return scratch->account.id;
}

static __always_inline void begin_key(struct scratch *scratch, struct task_struct *task)
{
	__builtin_memset(&scratch->key, 0, sizeof(scratch->key));
	__builtin_memset(&scratch->account, 0, sizeof(scratch->account));
	scratch->key.cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	scratch->key.uid = BPF_CORE_READ(task, real_cred, uid.val);
}

// The account of a process, created if it is not known yet.
static __always_inline u32 account_of(struct scratch *scratch, struct task_struct *task, u32 pid)
{
	struct process *known = bpf_map_lookup_elem(&processes, &pid), process = {};

	if (known && known->account)
		return known->account;
	begin_key(scratch, task);
	process.account = account_of_key(scratch, task);
	if (process.account)
		bpf_map_update_elem(&processes, &pid, &process, BPF_ANY);
	return process.account;
}

struct environment {
	struct scratch *scratch;
	u64 at, end;
	u32 in_middle;
	u32 markers;
	u32 needs;
	u32 is_found;
	u32 is_outside;
};

static __always_inline u32 take_value(struct environment *environment, const volatile struct job_variable *variable)
{
	struct scratch *scratch = environment->scratch;
	const void *value = (void *)environment->at + variable->length;

	if (variable->meaning == MEANS_OUTSIDE) {
		// Users must not be able to leave their job.
		environment->is_outside = scratch->key.uid == 0;
	} else if (variable->meaning == MEANS_MARKER) {
		environment->markers |= variable->scheduler;
	} else if (variable->meaning == MEANS_NAME) {
		bpf_probe_read_user_str(scratch->account.name, sizeof(scratch->account.name), value);
	} else if (variable->meaning == MEANS_ID && (!environment->is_found || environment->needs)) {
		char first = 0;
		bpf_probe_read_user(&first, sizeof(first), value);
		if (!first)
			return 0; // set to an empty string
		__builtin_memset(scratch->key.job, 0, sizeof(scratch->key.job));
		bpf_probe_read_user_str(scratch->key.job, sizeof(scratch->key.job), value);
		scratch->key.scheduler = variable->scheduler;
		environment->needs = variable->needs;
		environment->is_found = 1;
	}
	return 0;
}

// Parse one variable, or a part of a long one.
static long look_at_variable(u32 number, struct environment *environment)
{
	struct scratch *scratch = environment->scratch;
	long length;

	if (environment->at >= environment->end)
		return 1;
	length = bpf_probe_read_user_str(scratch->text, sizeof(scratch->text), (void *)environment->at);
	if (length <= 0)
		return 1;
	if (!environment->in_middle)
		for (int i = 0; i < MOST_VARIABLES; i++) {
			const volatile struct job_variable *variable = &settings.variables[i];
			if (!variable->length)
				break;
			if (!((scratch->text[0] ^ variable->name[0]) & variable->mask[0]) &&
			    !((scratch->text[1] ^ variable->name[1]) & variable->mask[1]) &&
			    !((scratch->text[2] ^ variable->name[2]) & variable->mask[2]))
				take_value(environment, variable);
		}
	// A string that fills the buffer has no end in it: the helper has set the NUL.
	environment->in_middle = length == sizeof(scratch->text);
	environment->at += environment->in_middle ? length - 1 : length;
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
	struct scratch *scratch = scratch_of_cpu();
	struct mm_struct___accounts *mm = (void *)task->mm;
	u32 pid = task->tgid;
	struct process *known, before = {}, process = {};
	struct environment environment = { .scratch = scratch };

	if (!scratch || !mm)
		return 0;
	begin_key(scratch, task);
	environment.at = BPF_CORE_READ(mm, env_start);
	environment.end = BPF_CORE_READ(mm, env_end);
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop))
		bpf_loop(ENVIRONMENT_STEPS, look_at_variable, &environment, 0);
	process.has_job = !environment.is_outside && environment.is_found && (environment.markers & environment.needs) == environment.needs;
	if (!process.has_job) {
		known = bpf_map_lookup_elem(&processes, &pid);
		if (known)
			before = *known;
		// Programs that cleared their environment still belong to the job.
		if (before.has_job && !environment.is_outside)
			return 0;
		begin_key(scratch, task);
	}
	process.account = account_of_key(scratch, task);
	// A starting agent may set the job of the process at this moment, which must not be
	// overwritten: nothing is written unless something changed.
	if (!process.account || (!process.has_job && !before.has_job && before.account == process.account))
		return 0;
	if (bpf_map_update_elem(&processes, &pid, &process, process.has_job || before.account ? BPF_ANY : BPF_NOEXIST) &&
	    !bpf_map_lookup_elem(&processes, &pid))
		count_lost();
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(fork, struct task_struct *parent, struct task_struct *child)
{
	u32 pid = child->tgid, from = parent->tgid;
	struct process *process;

	if (pid == from)
		return 0;
	process = bpf_map_lookup_elem(&processes, &from);
	if (process && bpf_map_update_elem(&processes, &pid, process, BPF_ANY))
		count_lost();
	return 0;
}

static __always_inline struct ended_counts *ended_of(u32 account)
{
	struct ended_counts *counts = bpf_map_lookup_elem(&ended, &account), none = {};

	if (counts)
		return counts;
	bpf_map_update_elem(&ended, &account, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&ended, &account);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(end, struct task_struct *task)
{
	u32 pid = task->tgid;
	struct process *process = bpf_map_lookup_elem(&processes, &pid);
	struct ended_counts *counts;

	if (!process)
		return 0;
	counts = ended_of(process->account);
	if (!counts) {
		count_lost();
		return 0;
	}
#define ADD_COUNTER(name, value) __sync_fetch_and_add(&counts->used.name, value);
	THREAD_COUNTERS(ADD_COUNTER)
	counts->last_ns = bpf_ktime_get_ns();
	if (BPF_CORE_READ(task, signal, live.counter) > 0)
		return 0;
	struct signal_struct___accounts *signal = (void *)task->signal;
	u64 largest = BPF_CORE_READ(signal, maxrss) * PAGE_BYTES;
	if (largest > counts->largest_bytes)
		counts->largest_bytes = largest;
	__sync_fetch_and_add(&counts->processes, 1);
	bpf_map_delete_elem(&processes, &pid);
	return 0;
}

SEC("tp_btf/cgroup_mkdir")
int BPF_PROG(make_group, struct cgroup *group, const char *path)
{
	struct scratch *scratch = scratch_of_cpu();
	u64 id = BPF_CORE_READ(group, kn, id);

	if (!scratch)
		return 0;
	_Static_assert(sizeof(scratch->named.path.names) >= GROUP_PATH_BYTES, "a path of a group has room");
	bpf_probe_read_kernel_str(scratch->named.path.names, GROUP_PATH_BYTES, path);
	bpf_map_update_elem(&groups, &id, scratch->named.path.names, BPF_ANY);
	return 0;
}

// Argument of a call; calls that name files use only the first five.
static __always_inline u64 argument(struct pt_regs *regs, u8 index, bool is_32_bit)
{
	switch (index) {
	case 0: return is_32_bit ? (u32)regs->bx : regs->di;
	case 1: return is_32_bit ? (u32)regs->cx : regs->si;
	case 2: return is_32_bit ? (u32)regs->dx : regs->dx;
	case 3: return is_32_bit ? (u32)regs->si : regs->r10;
	case 4: return is_32_bit ? (u32)regs->di : regs->r8;
	default: return 0;
	}
}

// Identify the file of a call. Returns whether it is in a file system, or is a block device.
static __always_inline bool identify(struct call *call, struct file *file)
{
	if (reads_in_place()) {
		struct inode *inode = typed(struct file, file)->f_inode;
		call->inode = inode->i_ino;
		call->device = inode->i_sb->s_dev;
		call->generation = inode->i_generation;
		call->file_type = inode->i_mode & S_IFMT;
	} else {
		struct inode *inode = BPF_CORE_READ(file, f_inode);
		call->inode = BPF_CORE_READ(inode, i_ino);
		call->device = BPF_CORE_READ(inode, i_sb, s_dev);
		call->generation = BPF_CORE_READ(inode, i_generation);
		call->file_type = BPF_CORE_READ(inode, i_mode) & S_IFMT;
	}
	return call->file_type == S_IFREG || call->file_type == S_IFDIR || call->file_type == S_IFBLK || call->file_type == S_IFLNK;
}

static __always_inline u32 device_of_root(struct vfsmount *mount)
{
	if (reads_in_place())
		return typed(struct vfsmount, mount)->mnt_root->d_inode->i_sb->s_dev;
	return BPF_CORE_READ(mount, mnt_root, d_inode, i_sb, s_dev);
}

// The file system of a path, according to mount points: symbolic links on the way are not followed.
static __always_inline u32 device_of_path(struct scratch *scratch, struct task_struct *task, struct call *call)
{
	struct task_struct___accounts *of_task = (void *)task;
	struct mount_key *mount = &scratch->mount;
	u32 *device;

	long length = bpf_probe_read_user_str(mount->path, sizeof(mount->path), (void *)call->path);
	if (length > 0 && mount->path[0] == '/') {
		if (of_task->nsproxy && of_task->nsproxy->mnt_ns->ns.inum == settings.mount_namespace) {
			mount->bits = sizeof(mount->path) * 8;
			device = bpf_map_lookup_elem(&mounts, mount);
			if (device)
				return *device;
		}
		return device_of_root(of_task->fs->root.mnt);
	}
	if (call->fd != AT_FDCWD) {
		struct file *file = file_of(task, call->fd);
		return file ? BPF_CORE_READ(file, f_inode, i_sb, s_dev) : 0;
	}
	return device_of_root(task->fs->pwd.mnt);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(enter, struct pt_regs *regs, long entered)
{
	struct task_struct *task = bpf_get_current_task_btf();
	bool is_32_bit = is_compat(task);
	u64 number = is_32_bit ? compat_call(entered, (u32)regs->bx) & COMPAT_NUMBER : entered;

	number &= CALLS - 1;
	u32 kind = settings.kinds[number];
	if (kind == KIND_NONE)
		return 0;
	struct call *call = bpf_task_storage_get(&begun, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!call) {
		count_lost();
		return 0;
	}
	const volatile struct shape *shape = &config.shapes[number];
	call->kind = KIND_NONE;
	call->second_device = 0;
	call->file_type = 0;
	call->path = 0;
	if (shape->path != NONE) {
		call->path = argument(regs, shape->path, is_32_bit);
		call->fd = shape->directory == NONE ? AT_FDCWD : (int)argument(regs, shape->directory, is_32_bit);
	} else {
		call->fd = argument(regs, shape->fd, is_32_bit);
		struct file *file = file_of(task, call->fd);
		bool is_file = file && identify(call, file);
		if (kind == KIND_COPY) {
			struct file *second = file_of(task, argument(regs, shape->second_fd, is_32_bit));
			u32 type = second ? BPF_CORE_READ(second, f_inode, i_mode) & S_IFMT : 0;
			if (type == S_IFREG || type == S_IFBLK)
				call->second_device = BPF_CORE_READ(second, f_inode, i_sb, s_dev);
			if (!is_file)
				call->device = 0;
			is_file = is_file || call->second_device;
		}
		if (!is_file)
			return 0;
	}
	call->switches = task->nvcsw;
	call->cpu_ns = task->se.sum_exec_runtime;
	call->delay_ns = run_delay(task);
	call->kind = kind;
	call->from_ns = bpf_ktime_get_ns();
	return 0;
}

// The part of a call's time that its thread waited for something other than a CPU.
static __always_inline u64 waited(struct task_struct *task, struct call *call, u64 time_ns)
{
	if (task->nvcsw == call->switches)
		return 0;
	u64 other_ns = task->se.sum_exec_runtime - call->cpu_ns + run_delay(task) - call->delay_ns;
	return other_ns < time_ns ? time_ns - other_ns : 0;
}

static __always_inline struct call_counts *counts_of(u32 account, u32 device)
{
	struct call_key key = { .account = account, .device = device };
	struct call_counts *counts = bpf_map_lookup_elem(&sums, &key), none = {};

	if (counts)
		return counts;
	bpf_map_update_elem(&sums, &key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&sums, &key);
}

static __always_inline void count(u32 account, u32 device, u32 kind, u64 bytes, bool is_error, u64 time_ns, u64 wait_ns)
{
	struct call_counts *counts = counts_of(account, device);

	if (!counts || kind >= KIND_COPY) {
		count_lost();
		return;
	}
	__sync_fetch_and_add(&counts->calls[kind], 1);
	__sync_fetch_and_add(&counts->time_ns, time_ns);
	if (kind == KIND_READ)
		__sync_fetch_and_add(&counts->read_bytes, bytes);
	if (kind == KIND_WRITE)
		__sync_fetch_and_add(&counts->written_bytes, bytes);
	if (is_error)
		__sync_fetch_and_add(&counts->errors, 1);
	if (wait_ns)
		__sync_fetch_and_add(&counts->wait_ns, wait_ns);
}

static __noinline int send_name(struct scratch *scratch, struct file *file, struct job_file_key *key)
{
	if (!scratch || !key)
		return 0;
	struct name_and_path *out = &scratch->named;
	out->name.key = *key;
	u32 length = names_of(file, &out->path, &out->name.flags, &out->name.count);
	if (length > PATH_BYTES)
		length = PATH_BYTES;
	out->name.length = length;
	return !bpf_ringbuf_output(&names, out, sizeof(out->name) + length, BPF_RB_NO_WAKEUP);
}

static __always_inline struct job_file_counts *file_counts(struct job_file_key *key)
{
	struct job_file_counts *counts = bpf_map_lookup_elem(&files, key), none = {};

	if (counts)
		return counts;
	bpf_map_update_elem(&files, key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&files, key);
}

static __always_inline void count_file(struct scratch *scratch, struct task_struct *task, struct call *call, u32 account, u64 bytes, u64 time_ns)
{
	struct job_file_key key = { .inode = call->inode, .device = call->device, .generation = call->generation, .account = account };
	struct job_file_counts *counts = file_counts(&key);
	u32 zero = 0;

	if (!counts) {
		u64 *left_out = bpf_map_lookup_elem(&files_left_out, &zero);
		if (left_out)
			__sync_fetch_and_add(left_out, 1);
		return;
	}
	__sync_fetch_and_add(&counts->calls, 1);
	__sync_fetch_and_add(&counts->time_ns, time_ns);
	if (call->kind == KIND_READ || call->kind == KIND_COPY)
		__sync_fetch_and_add(&counts->read_bytes, bytes);
	if (call->kind == KIND_WRITE)
		__sync_fetch_and_add(&counts->written_bytes, bytes);
	if (counts->is_named || call->kind == KIND_CLOSE)
		return;
	struct file *file = file_of(task, call->fd);
	if (file)
		counts->is_named = send_name(scratch, file, &key);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(leave, struct pt_regs *regs, long result)
{
	struct task_struct *task = bpf_get_current_task_btf();

	// Most calls end here. (32-bit programs have other numbers.)
	if (!is_compat(task) && settings.kinds[regs->orig_ax & (CALLS - 1)] == KIND_NONE)
		return 0;
	struct call *call = bpf_task_storage_get(&begun, task, 0, 0);
	struct scratch *scratch = scratch_of_cpu();

	if (!call || call->kind == KIND_NONE || !scratch)
		return 0;
	u64 time_ns = bpf_ktime_get_ns() - call->from_ns;
	u64 wait_ns = waited(task, call, time_ns);
	bool is_error = result < 0 && result >= -MOST_ERRORS;
	u64 bytes = result > 0 ? result : 0;
	u32 account = account_of(scratch, task, task->tgid);
	if (!account) {
		call->kind = KIND_NONE;
		return 0;
	}
	if (call->kind == KIND_OPEN && result >= 0) {
		struct file___accounts *file = (void *)file_of(task, result);
		call->fd = result;
		if (!file || !identify(call, (void *)file)) {
			call->kind = KIND_NONE; // a terminal or a named pipe
			return 0;
		}
		if (BPF_CORE_READ(file, f_mode) & FMODE_CREATED)
			call->kind = KIND_CREATE;
	} else if (call->path) {
		call->device = device_of_path(scratch, task, call);
	}
	if (call->kind == KIND_COPY) {
		if (call->device)
			count(account, call->device, KIND_READ, bytes, is_error, time_ns, wait_ns);
		if (call->second_device)
			count(account, call->second_device, KIND_WRITE, bytes, is_error, call->device ? 0 : time_ns, call->device ? 0 : wait_ns);
	} else {
		count(account, call->device, call->kind, bytes, is_error, time_ns, wait_ns);
	}
	if (call->file_type && call->device)
		count_file(scratch, task, call, account, call->kind == KIND_READ || call->kind == KIND_WRITE || call->kind == KIND_COPY ? bytes : 0, time_ns);
	call->kind = KIND_NONE;
	return 0;
}

// A function for each kernel version: otherwise the compiler would move the field offset that one
// kernel lacks before the check for it.
static __noinline s64 pages_before_6_2(u64 mm, u32 kind)
{
	u64 at = bpf_core_field_offset(struct mm_struct___before_6_2, rss_stat.count) + kind * sizeof(s64);
	s64 pages = 0;

	bpf_probe_read_kernel(&pages, sizeof(pages), (void *)(mm + at));
	return pages;
}

static __noinline s64 pages_since_6_2(u64 mm, u32 kind)
{
	u64 at = bpf_core_field_offset(struct mm_struct, rss_stat) + (u64)kind * bpf_core_type_size(struct percpu_counter);
	struct percpu_counter *counter = (void *)(mm + at);

	return BPF_CORE_READ(counter, count);
}

static __always_inline u64 resident_bytes(struct mm_struct *mm)
{
	struct mm_struct___before_6_2 *old = (void *)mm;
	s64 pages = 0;

	for (int kind = 0; kind < RESIDENT_KINDS; kind++) {
		if (kind == SWAPPED)
			continue;
		s64 of_kind = bpf_core_field_exists(old->rss_stat.count) ? pages_before_6_2((u64)mm, kind) : pages_since_6_2((u64)mm, kind);
		pages += of_kind > 0 ? of_kind : 0;
	}
	return pages * PAGE_BYTES;
}

SEC("iter/task")
int list_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	u32 zero = 0;
	struct scratch *scratch = bpf_map_lookup_elem(&iterator_scratches, &zero);

	if (!task || !scratch || task->flags & PF_KTHREAD)
		return 0;
	struct live_counts *live = &scratch->live;
	__builtin_memset(live, 0, sizeof(*live));
	live->account = account_of(scratch, task, task->tgid);
	live->is_first = task->pid == task->tgid;
#define SET_COUNTER(name, value) live->used.name = value;
	THREAD_COUNTERS(SET_COUNTER)
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	if (live->is_first && mm) {
		struct mm_struct___accounts *high = (void *)mm;
		struct signal_struct___accounts *signal = (void *)BPF_CORE_READ(task, signal);
		u64 largest = BPF_CORE_READ(high, hiwater_rss) * PAGE_BYTES, before = BPF_CORE_READ(signal, maxrss) * PAGE_BYTES;
		live->resident_bytes = resident_bytes(mm);
		live->largest_bytes = largest > before ? largest : before;
		if (live->resident_bytes > live->largest_bytes)
			live->largest_bytes = live->resident_bytes;
	}
	bpf_seq_write(ctx->meta->seq, live, sizeof(*live));
	return 0;
}
