// The open file of a descriptor and its path, for programs that add up by file.
#pragma once

#include "bpf/kernel.h"
#include "families/paths/walk.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

static __always_inline struct file *file_of(struct task_struct *task, int fd)
{
	struct file *file = 0;

	if (!task->files)
		return 0;
	struct fdtable *table = task->files->fdt;
	if (fd >= 0 && (u32)fd < table->max_fds)
		bpf_probe_read_kernel(&file, sizeof(file), table->fd + fd);
	return file;
}

// The names from a file to the root. Returns their length; flags as in `path_event`.
static __always_inline u32 names_of(struct file *file, struct scratch_path *path, unsigned short *flags, unsigned short *count)
{
	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
	struct walk walk = { .dentry = dentry, .out = path, .flags = PATH_CUT };

	walk.mount = (struct mount *)((u64)BPF_CORE_READ(file, f_path.mnt) - bpf_core_field_offset(struct mount, mnt));
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop))
		bpf_loop(PATH_NAMES, step, &walk, 0);
	*flags = walk.flags;
	if (!BPF_CORE_READ(dentry, d_hash.pprev) && BPF_CORE_READ(dentry, d_parent) != dentry)
		*flags |= PATH_DELETED;
	*count = walk.count;
	u32 length = walk.used;
	if (length > PATH_BYTES)
		length = PATH_BYTES;
	return length;
}
