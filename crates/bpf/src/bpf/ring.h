// Ring buffers for events: one per CPU, in memory that the user side has mapped.
//
// Only its own CPU writes to a ring, so nothing is shared between CPUs and nothing waits. An
// interrupt may write to the ring while another event is being written, so space is reserved in one
// atomic step, and an event is valid only once its position is stored.
#pragma once

#include "kernel.h"
#include "event.h"
#include "config.h"
#include <bpf/bpf_helpers.h>

#define RING_HEADER 4096
// Room after the end of the ring for an event that begins before the end.
#define RING_SLACK 16384
#define RING_KINDS 256 // all that `event_header.kind` can hold

struct ring {
	u64 head; // bytes written since the start; begins at the size of the ring, so that no position is 0
	u64 pad[7];
	u64 tail; // bytes read by the user side
	u64 wait_until_ns; // end of the wait for room
	u64 pad2[6];
	u64 dropped[RING_KINDS];
	u64 first_drop_ns, last_drop_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);   // number of CPUs, set before loading
	__uint(key_size, 4);
	__uint(value_size, RING_HEADER + 65536 + RING_SLACK); // set before loading
} rings SEC(".maps");


#define barrier() asm volatile("" ::: "memory")

// Limit a length. The assembly hides the value from the compiler: kernels such as 6.1 forget the
// range of a number that was spilled to the stack, and require another comparison.
static __always_inline u64 at_most(u64 length, u64 most)
{
	asm volatile("" : "+r"(length));
	return length > most ? most : length;
}

static __always_inline struct ring *this_ring(void)
{
	u32 cpu = bpf_get_smp_processor_id();
	return bpf_map_lookup_elem(&rings, &cpu);
}

// Count a lost event of this kind; the user side reads the counts and reports them.
static __always_inline void ring_lose(struct ring *ring, u32 kind, u64 now_ns)
{
	__sync_fetch_and_add(&ring->dropped[kind & (RING_KINDS - 1)], 1);
	if (!ring->first_drop_ns)
		ring->first_drop_ns = now_ns;
	ring->last_drop_ns = now_ns;
}

// Like ring_lose, for an event that is lost before it needs room.
static __always_inline void lose(u32 kind)
{
	struct ring *ring = this_ring();

	if (ring)
		ring_lose(ring, kind, bpf_ktime_get_ns());
}

// Time that an event waits for the ring to be emptied, so that a user side that is not scheduled
// for a moment finds it not full yet. It is long enough that 1 MiB lasts a second, and short for an
// interrupt.
#define WAIT_NS 200000
#define WAIT_LOOKS 16384

static __always_inline u64 ring_used(struct ring *ring)
{
	return *(volatile u64 *)&ring->head - *(volatile u64 *)&ring->tail;
}

static long wait_once(u32 look, void *unused)
{
	struct ring *ring = this_ring();

	// 1 ends the loop.
	return !ring || ring_used(ring) <= config.wait_above || bpf_ktime_get_ns() >= ring->wait_until_ns;
}

static __always_inline void *ring_at(struct ring *ring, u64 position)
{
	return (void *)ring + RING_HEADER + (position & config.ring_mask);
}

#define RING_TRIES 16

// For programs that another thread may interrupt, such as uprobes: reserves room for an event
// together with its time, while no other event is reserved, so that the events of a CPU are in the
// order of their times.
static __always_inline void *ring_take_in_order(struct ring *ring, u32 size, u32 kind, u64 *now_ns, u64 *position)
{
	for (u32 try = 0; try < RING_TRIES; try++) {
		u64 head = *(volatile u64 *)&ring->head;
		*now_ns = bpf_ktime_get_ns();
		if (head - *(volatile u64 *)&ring->tail + size + RING_SLACK > (u64)config.ring_mask + 1)
			break;
		if (__sync_val_compare_and_swap(&ring->head, head, head + size) == head) {
			*position = head;
			return ring_at(ring, head);
		}
	}
	ring_lose(ring, kind, *now_ns);
	return 0;
}

// Reserve room for an event; NULL if there is none, which is counted.
static __always_inline void *ring_take(struct ring *ring, u32 size, u32 kind, u64 now_ns, u64 *position)
{
#ifdef RING_PREEMPTIBLE
	return ring_take_in_order(ring, size, kind, &now_ns, position);
#endif
	if (config.wait_above && ring_used(ring) > config.wait_above) {
		// Kept in the ring, because room on the stack is scarce. If an interrupt sets it
		// meanwhile, it is hardly later.
		ring->wait_until_ns = bpf_ktime_get_ns() + WAIT_NS;
		bpf_loop(WAIT_LOOKS, wait_once, 0, 0);
	}
	// Interrupts use less than the slack between this and the next step.
	if (ring_used(ring) + size + RING_SLACK > (u64)config.ring_mask + 1) {
		ring_lose(ring, kind, now_ns);
		return 0;
	}
	*position = __sync_fetch_and_add(&ring->head, (u64)size);
	return ring_at(ring, *position);
}

// Complete the event: it is visible from now on.
static __always_inline void ring_give(struct event_header *header, u64 position, u32 size, u32 kind, u32 flags)
{
	header->length = size;
	header->kind = kind;
	header->flags = flags;
	barrier();
	*(volatile u32 *)&header->position = position;
}
