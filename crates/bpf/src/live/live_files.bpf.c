// Reads and writes of files and block devices by system calls, by file. Both tracepoints delay each
// call of the machine.

#include "bpf/kernel.h"
#include "bpf/ids.h"
#include "bpf/task.h"
#include "names.h"
#include "sums.h"
#include "lost.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

extern void *bpf_rdonly_cast(const void *object, u32 type) __ksym __weak;

#define typed(type, pointer) ((type *)bpf_rdonly_cast((pointer), bpf_core_type_id_kernel(type)))

#define MOST_FILES 32768
#define NAMED_NS 5000000000ull // an older name is looked up again, because the file may have been renamed
#define S_IFMT 0170000
#define S_IFBLK 0060000
#define S_IFREG 0100000

enum use { USE_NONE, USE_READ, USE_WRITE, USE_SYNC };

struct call {
	u64 from_ns;
	u32 use;
	int fd;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct call);
} begun SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_FILES);
	__type(key, struct file_key);
	__type(value, struct file_sum);
} sums SEC(".maps");

// Time at which the name of a file was sent.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MOST_FILES);
	__type(key, struct file_key);
	__type(value, u64);
} named SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} names SEC(".maps");

struct name_and_path {
	struct file_name name;
	struct scratch_path path;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct name_and_path);
} scratch SEC(".maps");

// Numbers of x86-64, which do not change.
static __always_inline u32 use_of(long call)
{
	switch (call) {
	case 0: case 17: case 19: case 295: case 327: // read, pread64, readv, preadv, preadv2
		return USE_READ;
	case 1: case 18: case 20: case 296: case 328: // write, pwrite64, writev, pwritev, pwritev2
		return USE_WRITE;
	case 74: case 75: // fsync, fdatasync
		return USE_SYNC;
	default:
		return USE_NONE;
	}
}

SEC("tp_btf/sys_enter")
int BPF_PROG(enter, struct pt_regs *regs, long number)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 use = use_of(number);
	struct call *call;

	if (!use || is_compat(task) || task->tgid == config.recorder_pid)
		return 0;
	call = bpf_task_storage_get(&begun, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!call) {
		count_lost();
		return 0;
	}
	call->use = use;
	call->fd = regs->di;
	call->from_ns = bpf_ktime_get_ns();
	return 0;
}

// Identify a file; returns its kind.
static __always_inline u32 identify(struct file_key *key, struct file *raw)
{
	if (bpf_ksym_exists(bpf_rdonly_cast)) { // Linux 6.2 and later: fields are read in place
		struct inode *inode = typed(struct file, raw)->f_inode;
		key->inode = inode->i_ino;
		key->device = inode->i_sb->s_dev;
		key->generation = inode->i_generation;
		return inode->i_mode & S_IFMT;
	}
	struct inode *inode = BPF_CORE_READ(raw, f_inode);
	key->inode = BPF_CORE_READ(inode, i_ino);
	key->device = BPF_CORE_READ(inode, i_sb, s_dev);
	key->generation = BPF_CORE_READ(inode, i_generation);
	return BPF_CORE_READ(inode, i_mode) & S_IFMT;
}

static __noinline int send_name(struct file *file, struct file_key *key)
{
	u32 zero = 0;
	struct name_and_path *out = bpf_map_lookup_elem(&scratch, &zero);

	if (!out || !key)
		return 0;
	out->name.key = *key;
	u32 length = names_of(file, &out->path, &out->name.flags, &out->name.count);
	if (length > PATH_BYTES)
		length = PATH_BYTES;
	out->name.length = length;
	return !bpf_ringbuf_output(&names, out, sizeof(out->name) + length, BPF_RB_NO_WAKEUP);
}

static __always_inline void name(struct file_sum *sum, struct file *file, struct file_key *key, u64 now_ns)
{
	u64 *before;

	if (sum->is_named)
		return;
	before = bpf_map_lookup_elem(&named, key);
	if (before && now_ns - *before <= NAMED_NS) {
		sum->is_named = 1;
	} else if (send_name(file, key)) { // if there is no room for a name, the next call tries again
		bpf_map_update_elem(&named, key, &now_ns, BPF_ANY);
		sum->is_named = 1;
	}
}

static __always_inline struct file_sum *sum_of(struct file_key *key)
{
	struct file_sum *sum = bpf_map_lookup_elem(&sums, key), none = {};

	if (sum)
		return sum;
	bpf_map_update_elem(&sums, key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&sums, key);
}

static __always_inline void add(struct file_sum *sum, u32 use, u64 bytes, u64 time_ns)
{
	__sync_fetch_and_add(&sum->time_ns, time_ns);
	if (use == USE_READ) {
		__sync_fetch_and_add(&sum->reads, 1);
		__sync_fetch_and_add(&sum->read_bytes, bytes);
	} else if (use == USE_WRITE) {
		__sync_fetch_and_add(&sum->writes, 1);
		__sync_fetch_and_add(&sum->written_bytes, bytes);
	} else {
		__sync_fetch_and_add(&sum->syncs, 1);
	}
	u32 pid = pid_of(bpf_get_current_task_btf());
	if (sum->pid != pid)
		bpf_get_current_comm(sum->comm, sizeof(sum->comm));
	sum->pid = pid;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(leave, struct pt_regs *regs, long result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct call *call;

	if (!use_of(regs->orig_ax))
		return 0;
	call = bpf_task_storage_get(&begun, task, 0, 0);
	if (!call || !call->use)
		return 0; // it began before this program was loaded
	u64 now_ns = bpf_ktime_get_ns();
	u32 use = call->use;
	call->use = USE_NONE;
	struct file *file = file_of(task, call->fd);
	struct file_key key = {};
	if (!file)
		return 0; // closed meanwhile
	u32 kind = identify(&key, file);
	if (kind != S_IFREG && kind != S_IFBLK)
		return 0;
	struct file_sum *sum = sum_of(&key);
	if (!sum) {
		count_lost();
		return 0;
	}
	add(sum, use, result > 0 ? result : 0, now_ns - call->from_ns);
	name(sum, file, &key, now_ns);
	return 0;
}
