// Finds the file that an inode belongs to, for programs that see pages but no directory and no
// descriptor.
#pragma once

#include "bpf/kernel.h"
#include <bpf/bpf_helpers.h>

#define KNOWN_INODES 262144

struct inode_key {
	u64 number;
	u32 device; // major << 20 | minor
	u32 generation;
};

// The last reported id of each inode; it has room for one entry if it is not needed (set before
// loading).
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, KNOWN_INODES);
	__type(key, struct inode_key);
	__type(value, u64);
} inode_ids SEC(".maps");

// Number of inodes that found no room.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} inodes_left_out SEC(".maps");

static __always_inline void know_inode(const struct inode_key *key, u64 id)
{
	u32 zero = 0;
	u64 *left_out;

	if (!bpf_map_update_elem(&inode_ids, key, &id, BPF_ANY))
		return;
	left_out = bpf_map_lookup_elem(&inodes_left_out, &zero);
	if (left_out)
		__sync_fetch_and_add(left_out, 1);
}

static __always_inline u64 id_of_inode(const struct inode_key *key)
{
	u64 *id = bpf_map_lookup_elem(&inode_ids, key);

	return id ? *id : 0;
}

static __always_inline bool are_inodes_left_out(void)
{
	u32 zero = 0;
	u64 *left_out = bpf_map_lookup_elem(&inodes_left_out, &zero);

	return left_out && *left_out;
}
