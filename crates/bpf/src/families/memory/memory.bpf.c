// Memory of the kernel: allocations are added up here by call site, and only the sums are sent.
// Each wait of a thread for memory is an event.

#include "bpf/kernel.h"
#include "bpf/ring.h"
#include "bpf/target.h"
#include "bpf/task.h"
#include "events.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PAGE_SHIFT 12
#define TRACEPOINT_FRAMES 3 // frames of the program itself and its callers
#define MOST_SITES 16384

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kmem_cache {
	u32 size, object_size;
	const char *name;
};

struct compact_control {
	s32 order;
};

#pragma clang attribute pop

// Preallocated: a map that allocates memory would run these programs again.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_SITES);
	__type(key, struct allocation_site);
	__type(value, struct allocation_count);
} allocations SEC(".maps");

// Allocations of pages need the frames, but following the stack takes 2 us. Reading the words of
// the stack that point to code is faster, and equal words nearly always mean equal frames.
#define STACK_WORDS 128
#define STACK_BYTES 16384 // of a thread or an interrupt on x86-64; the stack is aligned to this size

struct page_frames {
	u64 words[STACK_WORDS];
	u64 frames[PAGE_FRAMES];
};

// Used by one program only, which does not run again on a CPU before it has ended, so an interrupt
// does not change them meanwhile.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct page_frames);
} page_frames SEC(".maps");

// From a hash of the words to one of the frames.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MOST_SITES);
	__type(key, u64);
	__type(value, u64);
} known_frames SEC(".maps");

// Create the sum of a site: NULL if there is no room for it.
static __noinline struct allocation_count *begin_count(struct allocation_site *site, struct kmem_cache *cache, struct page_frames *frames)
{
	struct allocation_count count = {};

	if (!site)
		return 0;
	count.first_ns = bpf_ktime_get_ns();
	if (cache) {
		count.object_bytes = BPF_CORE_READ(cache, object_size);
		count.slot_bytes = BPF_CORE_READ(cache, size);
		bpf_probe_read_kernel_str(count.cache, sizeof(count.cache), BPF_CORE_READ(cache, name));
	}
	if (frames)
		bpf_probe_read_kernel(count.frames, sizeof(count.frames), frames->frames);
	// Another CPU may have created it.
	bpf_map_update_elem(&allocations, site, &count, BPF_NOEXIST);
	return bpf_map_lookup_elem(&allocations, site);
}

static __always_inline struct allocation_count *count_of(struct allocation_site *site, struct task_struct *task)
{
	site->pid = pid_of(task);
	site->started_ns = task->group_leader->start_time;
	return bpf_map_lookup_elem(&allocations, site);
}

// Add one to an existing sum.
static __always_inline bool add_known(struct allocation_site *site, struct task_struct *task)
{
	struct allocation_count *count = count_of(site, task);

	if (count)
		__sync_fetch_and_add(&count->number, 1);
	return count != 0;
}

static __always_inline int add(struct allocation_site *site, u64 asked_bytes, struct kmem_cache *cache, struct page_frames *frames)
{
	struct allocation_count *count = count_of(site, bpf_get_current_task_btf());

	if (!count)
		count = begin_count(site, cache, frames);
	if (!count) {
		lose(EVENT_ALLOCATIONS);
		return 0;
	}
	__sync_fetch_and_add(&count->number, 1);
	if (asked_bytes)
		__sync_fetch_and_add(&count->asked_bytes, asked_bytes);
	return 0;
}

SEC("tp_btf/kmalloc")
int BPF_PROG(allocates, u64 call_site, const void *object, u64 asked_bytes, u64 given_bytes)
{
	struct allocation_site site = {.call_site = call_site, .what = ALLOCATION_KMALLOC, .given_bytes = given_bytes};

	return is_wanted(bpf_get_current_task_btf()) ? add(&site, asked_bytes, 0, 0) : 0;
}

SEC("tp_btf/kfree")
int BPF_PROG(frees, u64 call_site)
{
	struct allocation_site site = {.call_site = call_site, .what = ALLOCATION_KMALLOC | ALLOCATION_FREE};
	u64 object = 0;

	if (!is_wanted(bpf_get_current_task_btf()))
		return 0;
	// The second argument, which kernels such as 6.1 do not let programs load. If it is NULL,
	// nothing is freed.
	bpf_probe_read_kernel(&object, sizeof(object), (void *)&ctx[1]);
	return object ? add(&site, 0, 0, 0) : 0;
}

SEC("tp_btf/kmem_cache_alloc")
int BPF_PROG(allocates_of_cache, u64 call_site, const void *object, struct kmem_cache *cache)
{
	struct allocation_site site = {.call_site = call_site, .cache = (u64)cache, .what = ALLOCATION_CACHE};

	return is_wanted(bpf_get_current_task_btf()) ? add(&site, 0, cache, 0) : 0;
}

SEC("tp_btf/kmem_cache_free")
int BPF_PROG(frees_of_cache, u64 call_site, const void *object, struct kmem_cache *cache)
{
	struct allocation_site site = {.call_site = call_site, .cache = (u64)cache, .what = ALLOCATION_CACHE | ALLOCATION_FREE};

	return is_wanted(bpf_get_current_task_btf()) ? add(&site, 0, cache, 0) : 0;
}

#define MIX 0x9e3779b97f4a7c15ull
#define TEXT_BYTES (64ull << 20)

// An address in the kernel's code, taken from the first stack: the rest of the code is near.
// Negative differences are farther away.
u64 text_at = 0;

// Hash of the words at the top of the stack, where the context is too.
static __always_inline u64 hash_of_words(void *context, struct page_frames *at)
{
	u64 bytes, hash = 0;

	// Stored in a map, so that the verifier treats the address as a number.
	*(volatile u64 *)at->words = (u64)context;
	// The memory after the end of the stack may be unmapped.
	bytes = STACK_BYTES - (*(volatile u64 *)at->words & (STACK_BYTES - 1));
	bytes = at_most(bytes, sizeof(at->words));
	if (bpf_probe_read_kernel(at->words, bytes, context))
		return 0;
	for (u32 index = 0; index < STACK_WORDS; index++) {
		u64 word = at->words[index];
		if (8 * index >= bytes)
			break;
		if (word - text_at + TEXT_BYTES / 2 < TEXT_BYTES)
			hash = (hash ^ word) * MIX;
	}
	return hash;
}

static __always_inline u64 hash_of_frames(void *context, struct page_frames *at)
{
	u64 hash = 0;

	__builtin_memset(at->frames, 0, sizeof(at->frames));
	bpf_get_stack(context, at->frames, sizeof(at->frames), TRACEPOINT_FRAMES);
	text_at = at->frames[0];
	for (u32 frame = 0; frame < PAGE_FRAMES; frame++)
		hash = (hash ^ at->frames[frame]) * MIX;
	return hash;
}

// The tracepoint does not state the caller, but the stack does.
SEC("tp_btf/mm_page_alloc")
int BPF_PROG(allocates_pages, struct page *page, u32 order)
{
	struct allocation_site site = {.what = ALLOCATION_PAGES, .given_bytes = 1u << (order & 15) << PAGE_SHIFT};
	struct task_struct *task = bpf_get_current_task_btf();
	struct page_frames *at;
	u64 words, *known;
	u32 first = 0;

	if (!page || !is_wanted(task))
		return 0;
	at = bpf_map_lookup_elem(&page_frames, &first);
	if (!at)
		return 0;
	words = hash_of_words(ctx, at);
	known = words ? bpf_map_lookup_elem(&known_frames, &words) : 0;
	if (known) {
		site.call_site = *known;
		if (add_known(&site, task))
			return 0;
	}
	site.call_site = hash_of_frames(ctx, at);
	if (!known && words)
		bpf_map_update_elem(&known_frames, &words, &site.call_site, BPF_ANY);
	return add(&site, 0, 0, at);
}

SEC("tp_btf/mm_page_free")
int BPF_PROG(frees_pages, struct page *page, u32 order)
{
	struct allocation_site site = {.what = ALLOCATION_PAGES | ALLOCATION_FREE, .given_bytes = 1u << (order & 15) << PAGE_SHIFT};

	return is_wanted(bpf_get_current_task_btf()) ? add(&site, 0, 0, 0) : 0;
}

// Waits for memory.

struct begun {
	u64 at_ns;
	u64 order;
};

// By thread and kind of wait.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, struct begun);
} begun SEC(".maps");

static __always_inline u64 key_of(struct task_struct *task, u32 kind)
{
	return (u64)(u32)task->pid << 32 | kind;
}

static __always_inline int begin(u32 kind, u32 order)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct begun wait = {.at_ns = bpf_ktime_get_ns(), .order = order};
	u64 key = key_of(task, kind);

	if (is_wanted(task) && bpf_map_update_elem(&begun, &key, &wait, BPF_ANY))
		lose(EVENT_MEMORY_STALL);
	return 0;
}

static __always_inline int write(struct task_struct *task, u32 kind, struct begun *wait, u64 now_ns, s64 pages)
{
	struct ring *ring = this_ring();
	struct memory_stall_event *event;
	u64 position;

	event = ring ? ring_take(ring, sizeof(*event), EVENT_MEMORY_STALL, now_ns, &position) : 0;
	if (!event)
		return 0; // counted as lost
	event->at_ns = now_ns;
	event->begin_ns = wait->at_ns;
	event->pages = pages;
	event->tid = tid_of(task);
	event->order = wait->order;
	event->call = kind == STALL_OOM_KILL ? CALL_NONE : call_of(task);
	event->pad = 0;
	event->pad2 = 0;
	ring_give(&event->header, position, sizeof(*event), EVENT_MEMORY_STALL, kind);
	return 0;
}

static __always_inline int end(u32 kind, s64 pages)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 key = key_of(task, kind);
	struct begun *wait = bpf_map_lookup_elem(&begun, &key);

	if (!wait)
		return 0;
	write(task, kind, wait, bpf_ktime_get_ns(), pages);
	bpf_map_delete_elem(&begun, &key);
	return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int BPF_PROG(direct_reclaim_begins, int order)
{
	return begin(STALL_DIRECT, order);
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int BPF_PROG(direct_reclaim_ends, u64 pages)
{
	return end(STALL_DIRECT, pages);
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int BPF_PROG(group_reclaim_begins, int order)
{
	return begin(STALL_GROUP, order);
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int BPF_PROG(group_reclaim_ends, u64 pages)
{
	return end(STALL_GROUP, pages);
}

SEC("tp_btf/mm_vmscan_node_reclaim_begin")
int BPF_PROG(node_reclaim_begins, int node, int order)
{
	return begin(STALL_NODE, order);
}

SEC("tp_btf/mm_vmscan_node_reclaim_end")
int BPF_PROG(node_reclaim_ends, u64 pages)
{
	return end(STALL_NODE, pages);
}

SEC("tp_btf/mm_compaction_begin")
int BPF_PROG(compaction_begins, struct compact_control *control)
{
	// No thread waits for a kernel thread that compacts in advance.
	return bpf_get_current_task_btf()->flags & PF_KTHREAD ? 0 : begin(STALL_COMPACTION, control->order);
}

SEC("tp_btf/mm_compaction_end")
int BPF_PROG(compaction_ends)
{
	return end(STALL_COMPACTION, -1);
}

static __always_inline int kill(struct task_struct *victim)
{
	struct begun now = {.at_ns = bpf_ktime_get_ns()};

	return is_wanted(victim) ? write(victim, STALL_OOM_KILL, &now, now.at_ns, -1) : 0;
}

SEC("tp_btf/mark_victim")
int BPF_PROG(kills, struct task_struct *victim)
{
	return kill(victim);
}

// On kernels such as 6.1 the tracepoint has only a number. Unless the victim is the thread that
// requests memory, it is unknown whether it is recorded.
SEC("tp_btf/mark_victim")
int BPF_PROG(kills_number, int pid)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return task->tgid == pid ? kill(task->group_leader) : 0;
}
