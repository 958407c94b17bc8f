// Finds per-CPU variables of the kernel: their address is a shared one plus the offset of the CPU.
//
// The kernel's symbol for that offset (this_cpu_off) has an address that few kernels reveal. But a
// per-CPU map is such a variable too, and both its addresses are available: the shared one is in
// the map, and looking it up gives that of this CPU.
#pragma once

#include "bpf/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

struct distance {
	u64 map, here; // addresses, stored in memory because the verifier forbids arithmetic on the pointers themselves
	u64 bytes;     // 0: unknown so far
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct distance);
} distances SEC(".maps");

// Difference between the shared address of a variable and that of this CPU; 0: unknown.
static __always_inline u64 distance_of_this_cpu(void)
{
	volatile struct distance *distance;
	u32 first = 0;
	u64 shared = 0;

	distance = bpf_map_lookup_elem(&distances, &first);
	if (!distance)
		return 0;
	if (!distance->bytes) {
		distance->map = (u64)&distances;
		distance->here = (u64)distance;
		bpf_probe_read_kernel(&shared, sizeof(shared), (void *)(distance->map + bpf_core_field_offset(struct bpf_array, pptrs)));
		if (shared)
			distance->bytes = distance->here - shared;
	}
	return distance->bytes;
}
