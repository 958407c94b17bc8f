// Counts items that found no room, so that they can be reported.
#pragma once

#include "bpf/kernel.h"
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} lost SEC(".maps");

static __always_inline void count_lost(void)
{
	u32 zero = 0;
	u64 *number = bpf_map_lookup_elem(&lost, &zero);

	if (number)
		__sync_fetch_and_add(number, 1);
}
