// Determines where a lock is: in an object of a slab cache, in the kernel's image, in the run queue of a CPU.
#pragma once

#include "bpf/kernel.h"
#include "bpf/ring.h"
#include "events.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kmem_cache_order_objects {
	u32 x;
};

struct kmem_cache {
	u32 size;
	u32 red_left_pad;
	struct kmem_cache_order_objects oo, min;
	const char *name;
};

struct slab {
	struct kmem_cache *slab_cache;
};

struct page___typed {
	unsigned long flags;
	u32 page_type;
};

struct rq;

struct cfs_rq {
	struct rq *rq;
};

struct task_group {
	struct cfs_rq **cfs_rq; // by CPU
};

struct task_struct___grouped {
	struct task_group *sched_task_group;
};

#pragma clang attribute pop

// The slab cache of an address; Linux 6.13 and later.
extern struct kmem_cache *bpf_get_kmem_cache(u64 address) __ksym __weak;

// Variables with the start of the kernel's mapping of memory, and of its array of pages. Only in
// kernels that name their variables in BTF.
extern const void page_offset_base __ksym __weak;
extern const void vmemmap_base __ksym __weak;

// Marks of a slab page: a flag, or from Linux 6.11 on the highest byte of its type.
enum pageflags {
	PG_slab = 9,
};

enum pagetype {
	PGTY_slab = 0xf5,
};

#define KERNEL_IMAGE 0xffffffff80000000ull // x86-64: __START_KERNEL_map; modules lie above it, too
#define PAGE_SHIFT 12
#define MOST_ORDER 15
#define MOST_CPUS 4096

// The orders of pages are in the upper half.
static __always_inline u32 order_of(u32 order_and_objects)
{
	return (order_and_objects >> 16) & MOST_ORDER;
}

static __always_inline bool is_slab(struct page___typed *page)
{
	if (bpf_core_enum_value_exists(enum pageflags, PG_slab))
		return BPF_CORE_READ(page, flags) >> bpf_core_enum_value(enum pageflags, PG_slab) & 1;
	if (bpf_core_enum_value_exists(enum pagetype, PGTY_slab))
		return BPF_CORE_READ(page, page_type) >> 24 == bpf_core_enum_value(enum pagetype, PGTY_slab);
	return 0;
}

// The same search as virt_to_slab in mm/slab.h, for kernels that have no function for it.
static __noinline u64 cache_of(u64 address)
{
	u64 memory = 0, pages = 0, head = 0;

	if (!&page_offset_base || !&vmemmap_base)
		return 0;
	bpf_probe_read_kernel(&memory, sizeof(memory), &page_offset_base);
	bpf_probe_read_kernel(&pages, sizeof(pages), &vmemmap_base);
	if (!memory || !pages || address < memory)
		return 0;
	u64 page = pages + ((address - memory) >> PAGE_SHIFT) * bpf_core_type_size(struct page);
	bpf_probe_read_kernel(&head, sizeof(head), (void *)page + bpf_core_field_offset(struct page, compound_head));
	if (head & 1)
		page = head - 1;
	if (!is_slab((void *)page))
		return 0;
	return (u64)BPF_CORE_READ((struct slab *)page, slab_cache);
}

static __always_inline bool lies_in_slab(struct lock_event *event, u64 lock)
{
	struct kmem_cache *cache;

	if (bpf_ksym_exists(bpf_get_kmem_cache))
		cache = bpf_get_kmem_cache(lock);
	else
		cache = (void *)cache_of(lock);
	if (!cache)
		return 0;
	event->object_bytes = BPF_CORE_READ(cache, size);
	event->object_start = bpf_core_field_exists(cache->red_left_pad) ? BPF_CORE_READ(cache, red_left_pad) : 0;
	event->order = order_of(BPF_CORE_READ(cache, oo.x));
	event->least_order = order_of(BPF_CORE_READ(cache, min.x));
	bpf_probe_read_kernel_str(event->cache, sizeof(event->cache), BPF_CORE_READ(cache, name));
	return 1;
}

struct search {
	u64 cfs_rqs;
	u64 lock;
	u32 cpu;
	u32 pad;
};

static long look_at_cpu(u32 cpu, struct search *search)
{
	u64 cfs_rq = 0, queue = 0;

	// There are as many rings as CPUs.
	if (!bpf_map_lookup_elem(&rings, &cpu))
		return 1;
	bpf_probe_read_kernel(&cfs_rq, sizeof(cfs_rq), (void *)(search->cfs_rqs + 8 * cpu));
	if (cfs_rq)
		bpf_probe_read_kernel(&queue, sizeof(queue), (void *)(cfs_rq + bpf_core_field_offset(struct cfs_rq, rq)));
	if (queue != search->lock)
		return 0;
	search->cpu = cpu;
	return 1;
}

// Whether the lock is that of a CPU's run queue, which begins with it. Every task group has the
// addresses of all run queues.
static __always_inline bool is_run_queue(struct lock_event *event, struct task_struct *task, u64 lock)
{
	struct task_struct___grouped *grouped = (void *)task;
	struct search search = { .lock = lock, .cpu = MOST_CPUS };

	if (!bpf_core_field_exists(grouped->sched_task_group))
		return 0;
	search.cfs_rqs = (u64)BPF_CORE_READ(grouped, sched_task_group, cfs_rq);
	if (!search.cfs_rqs)
		return 0;
	bpf_loop(MOST_CPUS, look_at_cpu, &search, 0);
	event->cpu = search.cpu;
	return search.cpu != MOST_CPUS;
}

static __always_inline void find_place(struct lock_event *place, struct task_struct *task, u64 lock)
{
	__builtin_memset(place, 0, sizeof(*place));
	if (lock >= KERNEL_IMAGE)
		place->region = LOCK_STATIC;
	else if (lies_in_slab(place, lock))
		place->region = LOCK_IN_SLAB;
	else if (is_run_queue(place, task, lock))
		place->region = LOCK_RUN_QUEUE;
	place->lock = lock;
}
