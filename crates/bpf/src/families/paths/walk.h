// Collects the names of directories from a file to the root.
#pragma once

#include "bpf/kernel.h"
#include "events.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define PATH_BYTES 4096
#define PATH_NAMES 64

struct scratch_path {
	char names[PATH_BYTES + 256];
};

struct walk {
	struct mount *mount;
	struct dentry *dentry;
	struct scratch_path *out;
	u32 used, count, flags;
};

// One step towards the root. Returns 1 at the end.
static long step(u32 number, struct walk *walk)
{
	struct dentry *dentry = walk->dentry, *parent = BPF_CORE_READ(dentry, d_parent);
	struct mount *mount = walk->mount;

	if (dentry == BPF_CORE_READ(mount, mnt.mnt_root)) {
		struct mount *above = BPF_CORE_READ(mount, mnt_parent);
		if (above == mount) {
			walk->flags = 0;
			return 1;
		}
		walk->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		walk->mount = above;
		return 0;
	}
	u32 length = BPF_CORE_READ(dentry, d_name.len) & 0xff;
	const unsigned char *name = BPF_CORE_READ(dentry, d_name.name);
	u32 used = walk->used;
	if (used > PATH_BYTES - 256)
		return 1;
	walk->out->names[used] = length;
	bpf_probe_read_kernel(&walk->out->names[used + 1], length, name);
	walk->used = used + length + 1;
	walk->count++;
	walk->dentry = parent;
	// Pipes, sockets and memory files are in no directory.
	if (dentry != parent)
		return 0;
	walk->flags = PATH_NO_DIRECTORY;
	return 1;
}
