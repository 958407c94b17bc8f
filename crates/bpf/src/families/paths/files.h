// Ids of files in events: a hash of everything that distinguishes one path of one file from
// another. A path event reports the path once for each id, as long as the id stays in the memory of
// reported ids; then again.
#pragma once

#include "bpf/kernel.h"
#include "bpf/ring.h"
#include "events.h"
#include "inodes.h"
#include "walk.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

extern void *bpf_rdonly_cast(const void *object, u32 type) __ksym __weak;

#define typed(type, pointer) ((type *)bpf_rdonly_cast((pointer), bpf_core_type_id_kernel(type)))

#define AT_FDCWD -100
#define S_IFMT 0170000
#define S_IFBLK 0060000
#define S_IFREG 0100000

#define REPORTED_IDS 65536
#define OLD_PATH_NAMES 16

struct reported_ids {
	u64 renames; // number of renames: part of the ids, because a rename changes the paths of files that have ids already
	u64 ids[REPORTED_IDS]; // each slot contains the last id that was reported for it
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE); // the user side may clear them to have paths reported again
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct reported_ids);
} reported SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch_path);
} scratch_paths SEC(".maps");

struct place {
	u64 dentry, mount, inode; // addresses
	u64 name_hash, inode_number;
	u32 generation;
	u16 mode;
};

static __always_inline u64 mix(u64 a, u64 b)
{
	u64 h = (a ^ b) * 0x9e3779b97f4a7c15ULL;
	return h ^ (h >> 29);
}

static __always_inline u64 id_of(const struct place *place, struct reported_ids *memory)
{
	u64 dentry, mount; // a file may be visible in several places

	if (bpf_ksym_exists(bpf_rdonly_cast)) {
		// The verifier allows no arithmetic on pointers except their difference, which is
		// sufficient: the other one is constant.
		dentry = place->dentry - (u64)memory;
		mount = place->mount - (u64)memory;
	} else {
		// Some are numbers here, from which no pointer may be subtracted.
		bpf_probe_read_kernel(&dentry, sizeof(dentry), &place->dentry);
		bpf_probe_read_kernel(&mount, sizeof(mount), &place->mount);
	}
	u64 h = mix(dentry, config.secret);
	h = mix(h, mount);
	h = mix(h, place->name_hash);
	h = mix(h, place->inode_number ^ (u64)place->generation << 32);
	h = mix(h, memory->renames);
	return h | 1; // 0 means none
}

// Names of objects without a directory have no hash, and some of them share an inode: `[eventfd]`
// and `[timerfd]` differ in their letters.
static __always_inline u64 letters_of(struct dentry *raw)
{
	u64 letters[2] = {};

	bpf_probe_read_kernel(letters, sizeof(letters), BPF_CORE_READ(raw, d_name.name));
	return mix(letters[0], letters[1]);
}

static __always_inline void place_of_dentry(struct place *place, struct dentry *raw)
{
	place->dentry = (u64)raw;
	if (bpf_ksym_exists(bpf_rdonly_cast)) {
		struct dentry *dentry = typed(struct dentry, raw);
		struct inode *inode = dentry->d_inode;
		place->inode = (u64)inode;
		place->name_hash = dentry->d_name.hash_len;
		place->inode_number = inode->i_ino;
		place->generation = inode->i_generation;
		place->mode = inode->i_mode;
		if (!(u32)place->name_hash)
			place->name_hash ^= letters_of(raw);
		return;
	}
	struct inode *inode = BPF_CORE_READ(raw, d_inode);
	place->inode = (u64)inode;
	place->name_hash = BPF_CORE_READ(raw, d_name.hash_len);
	place->inode_number = BPF_CORE_READ(inode, i_ino);
	place->generation = BPF_CORE_READ(inode, i_generation);
	place->mode = BPF_CORE_READ(inode, i_mode);
	if (!(u32)place->name_hash)
		place->name_hash ^= letters_of(raw);
}

// The verifier checks global functions once, not at each of their calls.
__noinline int tell_path(struct place *place, u64 id, u64 now_ns)
{
	u32 zero = 0;
	struct scratch_path *scratch = bpf_map_lookup_elem(&scratch_paths, &zero);
	struct ring *ring = this_ring();
	struct path_event *event;
	u64 position;

	if (!place || !scratch || !ring)
		return 0;
	struct dentry *dentry = (struct dentry *)place->dentry;
	struct inode *inode = (struct inode *)place->inode;
	struct walk walk = { .dentry = dentry, .out = scratch, .flags = PATH_CUT };
	walk.mount = (struct mount *)(place->mount - bpf_core_field_offset(struct mount, mnt));
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop)) {
		bpf_loop(PATH_NAMES, step, &walk, 0);
	} else { // before 5.17
		for (u32 i = 0; i < OLD_PATH_NAMES && !step(i, &walk); i++)
			;
	}
	u32 length = walk.used;
	if (length > PATH_BYTES)
		length = PATH_BYTES;
	u32 size = (sizeof(*event) + length + 7) & ~7u;
	event = ring_take(ring, size, EVENT_PATH, now_ns, &position);
	if (!event)
		return 0;
	event->id = id;
	event->inode = place->inode_number;
	event->device = BPF_CORE_READ(inode, i_sb, s_dev);
	event->mode = place->mode;
	event->flags = walk.flags;
	if (!BPF_CORE_READ(dentry, d_hash.pprev) && BPF_CORE_READ(dentry, d_parent) != dentry)
		event->flags |= PATH_DELETED;
	event->magic = BPF_CORE_READ(inode, i_sb, s_magic);
	event->length = length;
	event->count = walk.count;
	event->size = BPF_CORE_READ(inode, i_size);
	bpf_probe_read_kernel(event->names, length, scratch->names);
	struct inode_key key = { .number = place->inode_number, .device = event->device, .generation = place->generation };
	ring_give(&event->header, position, size, EVENT_PATH, 0);
	know_inode(&key, id);
	return 1;
}

// The id of a file, and an event with its path if that was not reported yet.
static __always_inline u64 report_file(struct place *place, u64 now_ns)
{
	u32 zero = 0;
	struct reported_ids *memory = bpf_map_lookup_elem(&reported, &zero);

	if (!memory)
		return 0;
	u64 id = id_of(place, memory);
	if (memory->ids[id >> 48 & (REPORTED_IDS - 1)] != id && tell_path(place, id, now_ns))
		memory->ids[id >> 48 & (REPORTED_IDS - 1)] = id;
	return id;
}

static __always_inline bool place_of_file(struct place *place, struct file *raw, s64 *position)
{
	if (!raw)
		return 0;
	if (bpf_ksym_exists(bpf_rdonly_cast)) {
		struct file *file = typed(struct file, raw);
		place->mount = (u64)file->f_path.mnt;
		*position = file->f_pos;
		place_of_dentry(place, file->f_path.dentry);
	} else {
		place->mount = (u64)BPF_CORE_READ(raw, f_path.mnt);
		*position = BPF_CORE_READ(raw, f_pos);
		place_of_dentry(place, BPF_CORE_READ(raw, f_path.dentry));
	}
	u16 kind = place->mode & S_IFMT;
	if (kind != S_IFREG && kind != S_IFBLK)
		*position = -1;
	return 1;
}

static __always_inline bool place_of_fd(struct place *place, struct task_struct *task, int fd, s64 *position)
{
	struct fdtable *table = task->files->fdt;
	struct file *raw = 0;

	if (fd < 0 || (u32)fd >= table->max_fds)
		return 0;
	bpf_probe_read_kernel(&raw, sizeof(raw), table->fd + fd);
	return place_of_file(place, raw, position);
}

static __always_inline void count_rename(void)
{
	u32 zero = 0;
	struct reported_ids *memory = bpf_map_lookup_elem(&reported, &zero);

	if (memory)
		__sync_fetch_and_add(&memory->renames, 1);
}

// Id of the file of a descriptor of the running thread; 0: none. And the file position; -1: it has
// none.
__noinline u64 file_at(int fd, u64 now_ns, s64 *position)
{
	struct place place = {};

	if (!position)
		return 0;
	*position = -1;
	return place_of_fd(&place, bpf_get_current_task_btf(), fd, position) ? report_file(&place, now_ns) : 0;
}

// Id of the working directory of the running thread.
__noinline u64 working_directory(u64 now_ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct place place = {};

	place.mount = (u64)task->fs->pwd.mnt;
	place_of_dentry(&place, task->fs->pwd.dentry);
	return report_file(&place, now_ns);
}

// Id of the directory that a relative path of the running thread starts from.
static __always_inline u64 base_of(int directory, u64 now_ns)
{
	s64 position;

	return directory == AT_FDCWD ? working_directory(now_ns) : file_at(directory, now_ns, &position);
}
