// The location of code of files in the address space of a process. Words of a stack are compared
// with it, and the user side resolves addresses with it.
//
// Each state of it is an *image*. An event reports how an image was created: a program was started,
// or a file was mapped into an earlier image. The user side therefore needs no other order of
// events, and children share the images of their parents.
#pragma once

#include "bpf/kernel.h"
#include "bpf/ids.h"
#include "bpf/ring.h"
#include "families/calls/events.h"
#include "events.h"
#include "families/paths/files.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define PROTECTION_EXEC 4
#define LAYOUT_TAGS 1024
// Size of a loader, which is not reported; Debian's has 214 kB.
#define LOADER_BYTES (256 << 10)
// Size of the address range of a tag, as a power of two.
#define GRANULE_SHIFT 17
// The first eight letters of libpython3.11.so.1.0, as a number.
#define LIBPYTHO 0x6f6874797062696cULL

enum python_state {
	PYTHON_NONE,   // nothing looks like an interpreter
	PYTHON_SOUGHT, // a binary may contain one
	PYTHON_FOUND,
};

// Location of an interpreter's list of threads: `interpreters.h`.
struct python {
	u64 header;    // header of the binary, in the memory of the process
	u64 runtime;   // _PyRuntime
	u64 code_type; // PyCode_Type
	u32 state;
	u32 tries;
	// Offsets of fields in the runtime, in an interpreter, and in the state of a thread.
	u16 interpreters, next_interpreter, threads, next_thread, thread_id, frame;
	u16 version; // 311 means 3.11
	u16 pad;
};

struct layout {
	u64 image;
	u64 code_start, code_bytes; // code of the program itself, which may be larger than the range of tags
	u64 low, bytes;             // the range of all addresses with tags
	u16 tags[LAYOUT_TAGS];      // by the lower bits of a granule's number: the upper bits of a granule with code
	struct python python;
};

// By process.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 32768);
	__type(key, u32);
	__type(value, struct layout);
} layouts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct layout);
} empty_layout SEC(".maps");

static __always_inline u16 tag_of(u64 granule)
{
	return (granule / LAYOUT_TAGS) + 1; // 0 means none
}

static __always_inline bool is_text(const struct layout *layout, u64 address)
{
	u64 granule = address >> GRANULE_SHIFT;

	// Most words are neither.
	if (address - layout->low >= layout->bytes)
		return address - layout->code_start < layout->code_bytes;
	return layout->tags[granule & (LAYOUT_TAGS - 1)] == tag_of(granule) || address - layout->code_start < layout->code_bytes;
}

struct marking {
	struct layout *layout;
	u64 first, last; // range of granules
};

static long mark(u32 index, struct marking *marking)
{
	u64 granule = marking->first + index;

	if (granule > marking->last)
		return 1;
	marking->layout->tags[granule & (LAYOUT_TAGS - 1)] = tag_of(granule);
	return 0;
}

static __always_inline void mark_text(struct layout *layout, u64 start, u64 end)
{
	struct marking marking = { layout, start >> GRANULE_SHIFT, (end - 1) >> GRANULE_SHIFT };
	u64 low = layout->low, high = low + layout->bytes;

	if (!high || start < low)
		low = start;
	if (end > high)
		high = end;
	layout->low = low;
	layout->bytes = high - low;
	bpf_loop(LAYOUT_TAGS, mark, &marking, 0);
}

// The layout of a process, a new one if it has none: nothing is known about mappings from before
// recording, or of a process that joined through a group.
static __always_inline struct layout *layout_of(u32 pid, bool anew)
{
	u32 zero = 0;
	struct layout *layout = anew ? 0 : bpf_map_lookup_elem(&layouts, &pid);

	if (layout)
		return layout;
	struct layout *empty = bpf_map_lookup_elem(&empty_layout, &zero);
	if (!empty)
		return 0;
	bpf_map_update_elem(&layouts, &pid, empty, BPF_ANY);
	return bpf_map_lookup_elem(&layouts, &pid);
}

// Note a binary that may contain an interpreter. Its header may not be in memory yet, so it is not
// checked here.
static __always_inline void seek_python_in(struct layout *layout, u64 header)
{
	layout->python.header = header;
	layout->python.tries = 0;
	layout->python.state = header ? PYTHON_SOUGHT : PYTHON_NONE;
}

// Whether a descriptor of the running process is a libpython, by its name.
__noinline int is_python_library(int fd)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct fdtable *table = task->files->fdt;
	struct file *file = 0;
	u64 letters = 0;

	if (fd < 0 || (u32)fd >= table->max_fds)
		return 0;
	bpf_probe_read_kernel(&file, sizeof(file), table->fd + fd);
	bpf_probe_read_kernel(&letters, sizeof(letters), BPF_CORE_READ(file, f_path.dentry, d_name.name));
	return letters == LIBPYTHO;
}

// The running process has mapped code of a file.
__noinline int tell_mapped(u64 start, struct call_mapping *mapping, u64 file, int fd, u64 now_ns)
{
	struct ring *ring = this_ring();
	struct mapped_event *event;
	u64 position;

	struct layout *layout = layout_of(pid_of(bpf_get_current_task_btf()), 0);
	if (!layout || !ring || !mapping)
		return 0;
	u64 length = mapping->length, offset = mapping->offset;
	if (!length)
		return 0;
	// Linkers keep the distance between header and code the same in memory and in the file.
	if (is_python_library(fd))
		seek_python_in(layout, start - offset);
	u64 parent = layout->image;
	u64 image = mix(mix(mix(mix(parent, start), length), offset), file);
	mark_text(layout, start, start + length);
	layout->image = image;
	event = ring_take(ring, sizeof(*event), EVENT_MAPPED, now_ns, &position);
	if (!event)
		return 0;
	event->image = image;
	event->parent = parent;
	event->start = start;
	event->length = length;
	event->offset = offset;
	event->file = file;
	event->at_ns = now_ns;
	ring_give(&event->header, position, sizeof(*event), EVENT_MAPPED, 0);
	return 0;
}

// The running process has started another program: the kernel has mapped it and its loader.
__noinline int tell_program(u64 now_ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct ring *ring = this_ring();
	struct program_event *event;
	struct place place = {};
	u64 position;
	s64 unused;

	struct layout *layout = layout_of(pid_of(task), 1);
	if (!layout || !ring)
		return 0;
	struct mm_struct *mm = task->mm;
	u64 code_start = mm->start_code, code_bytes = mm->end_code - code_start;
	layout->code_start = code_start;
	layout->code_bytes = code_bytes;
	layout->image = mix(now_ns, task->pid) | 1;
	u64 file = place_of_file(&place, mm->exe_file, &unused) ? report_file(&place, now_ns) : 0;
	event = ring_take(ring, sizeof(*event), EVENT_PROGRAM, now_ns, &position);
	if (!event)
		return 0;
	event->image = layout->image;
	event->at_ns = now_ns;
	event->file = file;
	event->code_start = code_start;
	event->code_bytes = code_bytes;
	bpf_probe_read_kernel(event->auxiliary, sizeof(event->auxiliary), mm->saved_auxv);
	u64 loader = 0, headers = 0;
	for (int i = 0; i < AUXILIARY_WORDS - 1; i += 2) {
		if (event->auxiliary[i] == AUXILIARY_BASE)
			loader = event->auxiliary[i + 1];
		if (event->auxiliary[i] == AUXILIARY_HEADERS)
			headers = event->auxiliary[i + 1];
	}
	ring_give(&event->header, position, sizeof(*event), EVENT_PROGRAM, 0);
	if (loader)
		mark_text(layout, loader, loader + LOADER_BYTES);
	// The program headers follow the header of the file in its first page.
	seek_python_in(layout, headers & ~4095ULL);
	return 0;
}

// A new process has the images of its parent.
static __always_inline void inherit_layout(u32 parent, u32 child)
{
	struct layout *layout = bpf_map_lookup_elem(&layouts, &parent);

	if (layout && parent != child)
		bpf_map_update_elem(&layouts, &child, layout, BPF_ANY);
}
