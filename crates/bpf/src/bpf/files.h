// Files as the events name them: by an id, made of all that tells one place of one file from another. Where that place is, a path event
// says, once for each id as long as the memory of ids already told lasts; then again.
#pragma once

#include "kernel.h"
#include "ring.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

extern void *bpf_rdonly_cast(const void *object, u32 type) __ksym __weak;

#define typed(type, pointer) ((type *)bpf_rdonly_cast((pointer), bpf_core_type_id_kernel(type)))

#define S_IFMT 0170000
#define S_IFBLK 0060000
#define S_IFREG 0100000

#define TOLD_IDS 65536
#define PATH_BYTES 4096
#define PATH_NAMES 64

// A rename changes the paths of files that have ids already: with it all ids are new.
u64 renames = 0;

// Each place holds the last id that was told for it.
struct told_ids {
	u64 ids[TOLD_IDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct told_ids);
} told SEC(".maps");

struct scratch_path {
	char names[PATH_BYTES + 256];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch_path);
} scratch_paths SEC(".maps");

struct place {
	struct dentry *dentry;
	struct vfsmount *mount;
	struct inode *inode;
	u64 name_hash, inode_number;
	u32 generation;
	u16 mode;
};

static __always_inline u64 mix(u64 a, u64 b)
{
	u64 h = (a ^ b) * 0x9e3779b97f4a7c15ULL;
	return h ^ (h >> 29);
}

static __always_inline u64 id_of(const struct place *place)
{
	// The verifier allows no arithmetic on pointers but their difference, which is as good: the other one stays where it is.
	u64 h = mix((u64)place->dentry - (u64)&config, config.secret);
	h = mix(h, place->name_hash);
	h = mix(h, place->inode_number ^ (u64)place->generation << 32);
	h = mix(h, renames);
	return h | 1; // 0 means none
}

static __always_inline void place_of_dentry(struct place *place, struct dentry *raw)
{
	place->dentry = raw;
	if (bpf_ksym_exists(bpf_rdonly_cast)) {
		struct dentry *dentry = typed(struct dentry, raw);
		struct inode *inode = dentry->d_inode;
		place->inode = inode;
		place->name_hash = dentry->d_name.hash_len;
		place->inode_number = inode->i_ino;
		place->generation = inode->i_generation;
		place->mode = inode->i_mode;
		return;
	}
	struct inode *inode = BPF_CORE_READ(raw, d_inode);
	place->inode = inode;
	place->name_hash = BPF_CORE_READ(raw, d_name.hash_len);
	place->inode_number = BPF_CORE_READ(inode, i_ino);
	place->generation = BPF_CORE_READ(inode, i_generation);
	place->mode = BPF_CORE_READ(inode, i_mode);
}

// Names from the leaf to the root of the process's mounts, into the scratch. Returns their bytes, their number << 16 and flags << 32.
// A global function: the verifier looks at it once, not at each of its calls; so its arguments are plain numbers.
__noinline u64 walk(u64 from, u64 vfsmount)
{
	struct mount *mount = (struct mount *)(vfsmount - bpf_core_field_offset(struct mount, mnt));
	struct dentry *dentry = (struct dentry *)from;
	u32 used = 0, zero = 0;
	u64 count = 0, flags = PATH_CUT;
	struct scratch_path *out = bpf_map_lookup_elem(&scratch_paths, &zero);

	if (!out)
		return 0;
	for (int i = 0; i < PATH_NAMES; i++) {
		if (used > PATH_BYTES - 256)
			break;
		// All rounds look alike to the verifier from here on, so that it need not follow each way through them.
		asm volatile("%0 &= 4095" : "+r"(used));
		struct dentry *root = BPF_CORE_READ(mount, mnt.mnt_root);
		struct dentry *parent = BPF_CORE_READ(dentry, d_parent);
		if (dentry == root) {
			struct mount *above = BPF_CORE_READ(mount, mnt_parent);
			if (above == mount) {
				flags = 0;
				break;
			}
			dentry = BPF_CORE_READ(mount, mnt_mountpoint);
			mount = above;
			continue;
		}
		u32 length = BPF_CORE_READ(dentry, d_name.len) & 0xff;
		const unsigned char *name = BPF_CORE_READ(dentry, d_name.name);
		out->names[used] = length;
		bpf_probe_read_kernel(&out->names[used + 1], length, name);
		used += length + 1;
		count++;
		// Pipes, sockets and memory files stand in no directory.
		if (dentry == parent) {
			flags = PATH_NO_DIRECTORY;
			break;
		}
		dentry = parent;
	}
	return used | count << 16 | flags << 32;
}

static __noinline int tell_path(struct place *place, u64 id, u64 now_ns)
{
	u32 zero = 0;
	struct scratch_path *scratch = bpf_map_lookup_elem(&scratch_paths, &zero);
	struct ring *ring = this_ring();
	struct dentry *dentry = place->dentry;
	struct inode *inode = place->inode;
	struct path_event *event;
	u64 position;

	if (!scratch || !ring)
		return 0;
	// Read as plain numbers: a global function takes no pointers into the kernel.
	u64 from = 0, mount = 0;
	bpf_probe_read_kernel(&from, sizeof(from), &place->dentry);
	bpf_probe_read_kernel(&mount, sizeof(mount), &place->mount);
	u64 walked = walk(from, mount);
	u32 length = walked & 0x1fff;
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
	event->flags = walked >> 32;
	if (!BPF_CORE_READ(dentry, d_hash.pprev) && BPF_CORE_READ(dentry, d_parent) != dentry)
		event->flags |= PATH_DELETED;
	event->magic = BPF_CORE_READ(inode, i_sb, s_magic);
	event->length = length;
	event->count = walked >> 16;
	event->size = BPF_CORE_READ(inode, i_size);
	bpf_probe_read_kernel(event->names, length, scratch->names);
	ring_give(&event->header, position, size, EVENT_PATH, 0);
	return 1;
}

// The id of a file, and its path if that was not told yet.
static __always_inline u64 id_told(struct place *place, u64 now_ns)
{
	u32 zero = 0;
	struct told_ids *memory = bpf_map_lookup_elem(&told, &zero);
	u64 id = id_of(place);

	if (memory && memory->ids[id >> 48 & (TOLD_IDS - 1)] != id && tell_path(place, id, now_ns))
		memory->ids[id >> 48 & (TOLD_IDS - 1)] = id;
	return id;
}

static __always_inline struct file *file_of(struct task_struct *task, int fd)
{
	struct fdtable *table = task->files->fdt;
	struct file *file = 0;

	if (fd < 0 || (u32)fd >= table->max_fds)
		return 0;
	bpf_probe_read_kernel(&file, sizeof(file), table->fd + fd);
	return file;
}
