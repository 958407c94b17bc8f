// Where the kernel keeps a variable that each CPU has for itself: at an address that all share, plus a distance of the CPU.
//
// The distance has a name (this_cpu_off), whose address few kernels reveal. But a map of this kind is such a variable too, and both its
// addresses can be had: the one that all share stands in the map, the one of this CPU is what looking it up gives.
#pragma once

#include "bpf/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

struct distance {
	u64 map, here; // addresses, noted in memory, as the verifier forbids arithmetic on the pointers themselves
	u64 bytes;     // 0: not yet known
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct distance);
} distances SEC(".maps");

// From the shared address of a variable to that of this CPU; 0: not known.
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
