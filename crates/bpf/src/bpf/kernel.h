// The fields of kernel structures that the programs read. CO-RE finds them by name in the running
// kernel, at whatever offset.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef s32 __s32;
typedef u64 __u64;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0

enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PERCPU_ARRAY = 6, BPF_MAP_TYPE_LRU_HASH = 9, BPF_MAP_TYPE_RINGBUF = 27, BPF_MAP_TYPE_TASK_STORAGE = 29 };
enum { BPF_F_NO_PREALLOC = 1, BPF_F_MMAPABLE = 1 << 10, BPF_LOCAL_STORAGE_GET_F_CREATE = 1, BPF_ANY = 0, BPF_NOEXIST = 1, BPF_RB_NO_WAKEUP = 1 };

// bpf_helper_defs.h lists the helpers by number; this enum shows whether the kernel has one.
enum bpf_func_id { BPF_FUNC_loop = 181 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs {
	unsigned long di, si, dx, cx, r10, r8, r9, ax, orig_ax, ip, sp, bp, bx, r12, r13, r14, r15;
};

struct thread_info {
	u32 status;
};

struct qstr {
	union {
		struct {
			u32 hash;
			u32 len;
		};
		u64 hash_len;
	};
	const unsigned char *name;
};

struct super_block {
	u32 s_dev;
	unsigned long s_magic;
};

struct inode {
	u16 i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	s64 i_size;
	u32 i_generation;
};

struct hlist_bl_node {
	struct hlist_bl_node *next, **pprev;
};

struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	struct path f_path;
	struct inode *f_inode;
	s64 f_pos;
	u32 f_flags;
};

struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_pgoff, vm_flags;
	struct file *vm_file;
};

struct address_space {
	struct inode *host;
};

struct page {
	unsigned long compound_head;
};

struct folio {
	struct address_space *mapping;
	unsigned long index;
};

struct bio_vec {
	struct page *bv_page;
	u32 bv_len, bv_offset;
};

struct bvec_iter {
	u32 bi_size, bi_idx, bi_bvec_done;
};

struct bio {
	u32 bi_opf;
	u16 bi_flags, bi_vcnt;
	struct bvec_iter bi_iter;
	struct bio_vec *bi_io_vec;
};

struct in6_addr {
	u8 bytes[16];
};

struct sock_common {
	u32 skc_daddr, skc_rcv_saddr;
	u16 skc_dport, skc_num, skc_family;
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
};

struct socket;

struct sock {
	struct sock_common __sk_common;
	struct socket *sk_socket;
	u16 sk_protocol;
};

struct tcp_sock {
	u64 bytes_received, bytes_sent, bytes_retrans;
	u32 total_retrans, srtt_us;
};

struct socket {
	struct sock *sk;
};

struct socket_alloc {
	struct socket socket;
	struct inode vfs_inode;
};

struct maple_tree {
	void *ma_root;
};

struct percpu_counter {
	s64 count;
	s32 *counters; // offset relative to each CPU's variables
};

struct bpf_array {
	void *pptrs[1];
};

struct mm_struct {
	struct maple_tree mm_mt;
	struct percpu_counter rss_stat[1]; // for file pages; Linux 6.2 and later
	unsigned long arg_start, arg_end, start_code, end_code, start_stack;
	unsigned long saved_auxv[1];
	struct file *exe_file;
};

struct fdtable {
	u32 max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct fs_struct {
	struct path pwd;
};

struct kernfs_node {
	u64 id;
};

struct cgroup {
	int level;
	struct kernfs_node *kn;
	struct cgroup *ancestors[1];
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct task_io_accounting {
	u64 rchar, wchar, syscr, syscw, read_bytes, write_bytes, cancelled_write_bytes;
};

typedef struct {
	s32 counter;
} atomic_t;

struct io_cqe {
	s32 fd;
};

struct io_kiocb {
	struct file *file;
	u8 opcode;
	struct io_cqe cqe;
};

struct kiocb {
	s64 ki_pos;
};

struct io_rw { // the same memory as io_kiocb, for reads and writes
	struct kiocb kiocb;
	u32 len;
};

struct filename { // the kernel's copy of a path argument
	const char *name;
};

struct io_open { // for opens
	int dfd;
	struct filename *filename;
};

struct io_close { // for closes
	int fd;
};

struct io_uring_cqe {
	s32 res;
};

struct ns_common {
	u32 inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	s32 nr;
	struct pid_namespace *ns;
};

struct pid {
	u32 level;
	struct upid numbers[1]; // one for each namespace, from the initial one to its own
};

struct signal_struct {
	atomic_t live;
	s32 nr_threads;
	struct pid *pids[2];
};

struct sched_entity {
	u64 sum_exec_runtime;
};

struct thread_struct {
	unsigned long fsbase;
};

typedef struct {
	u32 val;
} kuid_t;

struct cred {
	kuid_t uid;
};

struct task_struct {
	struct thread_info thread_info;
	s32 pid, tgid;
	u32 flags;
	s32 exit_code;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct files_struct *files;
	struct fs_struct *fs;
	struct css_set *cgroups;
	struct mm_struct *mm;
	struct signal_struct *signal;
	const struct cred *real_cred;
	unsigned long nvcsw, nivcsw;
	u64 start_time;
	u64 utime, stime;
	struct sched_entity se;
	unsigned long min_flt, maj_flt;
	s32 pagefault_disabled;
	struct task_io_accounting ioac;
	char comm[16];
	struct thread_struct thread;
};

struct linux_binprm {
	const char *filename;
};

union __sifields {
	struct {
		s32 _pid;
	} _kill;
};

struct kernel_siginfo {
	int si_signo, si_code;
	union __sifields _sifields;
};

#pragma clang attribute pop

// struct iovec is part of the interface to programs and does not change.
struct iovec {
	u64 base, length;
};
