// Finds the mapping of an address in the memory of the running thread.
//
// The kernel's helper takes the lock of all mappings, which costs 0.7 us and fails while another
// thread holds it. Here the tree of mappings is walked without a lock, as the kernel does at a
// fault: a node that is replaced stays readable as long as a program runs, and is marked as
// replaced. The mapping itself stays, because the fault in progress holds it.
#pragma once

#include "bpf/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

// From linux/maple_tree.h, on 64 bits: a node has 256 bytes, and its address in the tree has the
// kind in bits 3 to 6.
#define NODE_WORDS 32
#define NODE_MASK 255ull
#define TREE_DEPTH 8
#define ATTEMPTS 4
enum { NODE_LEAF = 1, NODE_RANGES = 2, NODE_RANGES_AND_GAPS = 3 };
enum { RANGE_PIVOTS = 15, GAP_PIVOTS = 9 };
enum { RANGE_SLOTS_AT = 16, RANGE_END_AT = 31, GAP_SLOTS_AT = 10, GAP_END_AT = 30 }; // offsets in words

struct tree_node {
	u64 words[NODE_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct tree_node);
} scratch_nodes SEC(".maps");

// Index of the slot of an address. A global function, so that the verifier checks it once and not
// for each level.
__noinline u32 slot_of(struct tree_node *node, u32 kind, u64 address)
{
	u32 end = RANGE_PIVOTS;
	u32 i;

	if (!node)
		return 0;
	if (kind == NODE_RANGES_AND_GAPS)
		end = (u8)node->words[GAP_END_AT];
	else if (!node->words[RANGE_PIVOTS]) // the last pivot: the number of slots follows it
		end = (u8)node->words[RANGE_END_AT];
	for (i = 0; i < RANGE_PIVOTS; i++)
		if (i >= end || node->words[1 + i] >= address)
			break;
	return i;
}

// The address of the mapping; 0: not found.
__noinline u64 walk_mappings(u64 entry, u64 address)
{
	u32 zero = 0;
	struct tree_node *node = bpf_map_lookup_elem(&scratch_nodes, &zero);

	if (!node)
		return 0;
	for (u32 level = 0; level < TREE_DEPTH; level++) {
		u64 place = entry & ~NODE_MASK;
		u32 kind = entry >> 3 & 15;

		if (!place || kind < NODE_LEAF || kind > NODE_RANGES_AND_GAPS)
			return 0;
		if (bpf_probe_read_kernel(node, sizeof(*node), (void *)place))
			return 0;
		if ((node->words[0] & ~NODE_MASK) == place) // the node was replaced
			return 0;
		u32 slot = slot_of(node, kind, address);
		if (kind == NODE_RANGES_AND_GAPS && slot > GAP_PIVOTS)
			return 0;
		slot += kind == NODE_RANGES_AND_GAPS ? GAP_SLOTS_AT : RANGE_SLOTS_AT;
		entry = node->words[slot & (NODE_WORDS - 1)];
		if (kind == NODE_LEAF)
			return entry;
	}
	return 0;
}

// The mapping that contains the address. It may be missed while another thread changes the tree,
// but not a moment later.
static __always_inline struct vm_area_struct *mapping_at(struct mm_struct *memory, u64 address)
{
	if (!bpf_core_type_exists(struct maple_tree)) // before 6.1
		return 0;
	for (u32 attempt = 0; attempt < ATTEMPTS; attempt++) {
		struct vm_area_struct *mapping = (void *)walk_mappings((u64)BPF_CORE_READ(memory, mm_mt.ma_root), address);
		if (mapping && BPF_CORE_READ(mapping, vm_start) <= address && address < BPF_CORE_READ(mapping, vm_end))
			return mapping;
	}
	return 0;
}
