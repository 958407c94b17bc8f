// Page faults on mapped files: reads and writes without a call. One event for each, written when it
// has been handled.
//
// A fault begins at a tracepoint and ends where the kernel counts it, which is a software event of
// perf: the same counts as those of getrusage. The mapping of the address is looked up only there.
// Faults on other memory cost that lookup, and create no event.

#include "bpf/kernel.h"
#include "events.h"
#include "bpf/ring.h"
#include "bpf/target.h"
#include "families/paths/files.h"
#include "mappings.h"
#include "percpu.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PAGE_SHIFT 12
#define VM_SHARED 8
#define NO_CPU 0xffffffff

// Bits of the processor's error code (Intel SDM volume 3, 4.7).
enum { ERROR_PRESENT = 1, ERROR_WRITE = 2, ERROR_USER = 4, ERROR_FETCH = 16 };

// Number of file pages that a process has mapped, in two parts: the count shared by all CPUs, and
// the part that this CPU has not added to it yet.
struct mapped_pages {
	s64 shared;
	s32 here;
	u32 cpu; // the current CPU, or NO_CPU: unknown
};

struct begun_fault {
	u64 start_ns; // 0: no fault is in progress
	u64 address;
	u64 around_page, around_pages; // pages that were offered for mapping with it
	struct mapped_pages mapped;
	u64 switches;
	u32 flags;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct begun_fault);
} begun SEC(".maps");

static __always_inline struct mapped_pages mapped_pages(struct mm_struct *mm)
{
	struct mapped_pages pages = {.cpu = NO_CPU};
	u64 distance = distance_of_this_cpu();

	if (!distance || !bpf_core_field_exists(struct mm_struct, rss_stat[0].counters))
		return pages;
	pages.shared = mm->rss_stat[0].count;
	if (!bpf_probe_read_kernel(&pages.here, sizeof(pages.here), (void *)mm->rss_stat[0].counters + distance))
		pages.cpu = bpf_get_smp_processor_id();
	return pages;
}

// Number of pages that a fault mapped; -1: unknown, because the thread moved to another CPU, or
// another thread of the process may have counted too.
static __always_inline s64 brought_in(struct task_struct *task, struct begun_fault *fault)
{
	struct mapped_pages *before = &fault->mapped, now = mapped_pages(task->mm);

	if (now.cpu == NO_CPU || now.cpu != before->cpu)
		return -1;
	if (task->signal->nr_threads > 1 && (now.shared != before->shared || task->nvcsw + task->nivcsw != fault->switches))
		return -1;
	return now.shared + now.here - before->shared - before->here;
}

static __always_inline void begin(unsigned long address, unsigned long error)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct begun_fault *fault;

	// Memory of the kernel belongs to no program.
	if ((s64)address < 0 || !is_wanted(task))
		return;
	fault = bpf_task_storage_get(&begun, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!fault) {
		lose(EVENT_FAULT);
		return;
	}
	fault->address = address;
	fault->around_pages = 0;
	fault->mapped = mapped_pages(task->mm);
	fault->switches = task->nvcsw + task->nivcsw;
	fault->flags = (error & ERROR_WRITE ? FAULT_WRITE : 0) | (error & ERROR_FETCH ? FAULT_FETCH : 0) |
		       (error & ERROR_PRESENT ? FAULT_MAPPED : 0) | (error & ERROR_USER ? 0 : FAULT_IN_CALL);
	fault->start_ns = bpf_ktime_get_ns();
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(begin_in_program, unsigned long address, struct pt_regs *regs, unsigned long error)
{
	begin(address, error);
	return 0;
}

// A call that reads or writes memory of the program, such as a write from a mapped file.
SEC("tp_btf/page_fault_kernel")
int BPF_PROG(begin_in_call, unsigned long address, struct pt_regs *regs, unsigned long error)
{
	// Reads of memory by interrupts, such as samples, load no pages. They may occur in the
	// middle of a fault.
	if (!bpf_get_current_task_btf()->pagefault_disabled)
		begin(address, error);
	return 0;
}

// Optional: older kernels lack this tracepoint.
SEC("tp_btf/mm_filemap_map_pages")
int BPF_PROG(map_around, void *mapping, unsigned long first, unsigned long last)
{
	struct begun_fault *fault = bpf_task_storage_get(&begun, bpf_get_current_task_btf(), 0, 0);

	if (fault && fault->start_ns) {
		fault->around_page = first;
		fault->around_pages = last - first + 1;
	}
	return 0;
}

struct found_mapping {
	struct place place;
	u64 address;
	u64 offset;
	u32 flags;
	bool is_file;
};

static long look_at_mapping(struct task_struct *task, struct vm_area_struct *mapping, struct found_mapping *found)
{
	struct file *file = BPF_CORE_READ(mapping, vm_file);
	s64 position;

	if (!file || !place_of_file(&found->place, file, &position))
		return 0;
	u16 kind = found->place.mode & S_IFMT;
	found->is_file = kind == S_IFREG || kind == S_IFBLK;
	found->offset = (found->address - BPF_CORE_READ(mapping, vm_start)) + (BPF_CORE_READ(mapping, vm_pgoff) << PAGE_SHIFT);
	found->flags = BPF_CORE_READ(mapping, vm_flags) & VM_SHARED ? FAULT_SHARED : 0;
	return 0;
}

// Returns whether the lookup succeeded. If the tree of mappings changes at this moment, the
// kernel's helper may still succeed.
static __always_inline bool find_mapping(struct task_struct *task, struct found_mapping *found)
{
	struct vm_area_struct *mapping = mapping_at(task->mm, found->address);

	if (!mapping)
		return !bpf_find_vma(task, found->address, look_at_mapping, found, 0);
	look_at_mapping(task, mapping, found);
	return 1;
}

// Memory that programs share (memfd, SysV, MAP_ANONYMOUS) looks like a file, but is in no
// directory.
static __always_inline bool is_in_directory(struct place *place)
{
	struct dentry *dentry = (struct dentry *)place->dentry;

	return BPF_CORE_READ(dentry, d_parent) != dentry;
}

static __always_inline int end(u32 flags)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct begun_fault *fault = bpf_task_storage_get(&begun, task, 0, 0);
	struct found_mapping found = {};
	struct fault_event *event;
	struct ring *ring;
	u64 position, start_ns;
	s64 pages;

	if (!fault || !fault->start_ns)
		return 0;
	start_ns = fault->start_ns;
	fault->start_ns = 0;
	found.address = fault->address & ~((1ull << PAGE_SHIFT) - 1);
	if (!find_mapping(task, &found)) {
		lose(EVENT_FAULT); // unknown whether it was a file
		return 0;
	}
	if (!found.is_file || !is_in_directory(&found.place))
		return 0;
	pages = brought_in(task, fault);
	u64 now_ns = bpf_ktime_get_ns();
	u64 file = report_file(&found.place, now_ns);
	ring = this_ring();
	if (!ring)
		return 0;
	event = ring_take(ring, sizeof(*event), EVENT_FAULT, now_ns, &position);
	if (!event)
		return 0;
	event->start_ns = start_ns;
	event->duration_ns = now_ns - start_ns;
	event->tid = tid_of(task);
	event->around_pages = fault->around_pages;
	event->address = fault->address;
	event->file = file;
	event->offset = found.offset;
	event->around_page = fault->around_page;
	event->brought_in_pages = pages;
	event->pad = 0;
	ring_give(&event->header, position, sizeof(*event), EVENT_FAULT, flags | fault->flags | found.flags | (pages < 0 ? 0 : FAULT_COUNTED));
	return 0;
}

SEC("perf_event")
int end_minor(void *context)
{
	return end(0);
}

SEC("perf_event")
int end_major(void *context)
{
	return end(FAULT_MAJOR);
}
