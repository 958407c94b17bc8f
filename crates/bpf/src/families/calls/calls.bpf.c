// System calls: one event for each, written at its return. The program at the entry only stores its
// time.
//
// States of a thread: *outside* -> *entered* (its entry is in the slot of its CPU) -> *away* (it
// left the CPU within the call: the entry is in its task storage) -> *outside*. Invariant: the slot
// of a CPU contains an entry of the thread that runs there, or none.

#include "bpf/kernel.h"
#include "events.h"
#include "bpf/ring.h"
#include "bpf/target.h"
#include "bpf/compat.h"
#include "families/paths/files.h"
#include "aio.h"
#define STACKS_WANTED config.stacks
#define STACKS_OFTEN (config.stacks == STACKS_ALL || config.stacks == STACKS_EVERY)
#include "families/stacks/stacks.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define CPUS 1024
#define PATH_MAX 4096

struct entry {
	u64 start_ns;
	u64 file; // SHAPE_FILE_BEFORE
	u64 task; // its task; 0: no task's. Not the thread id, which an exec may change within the call
	u64 number; // for a 32-bit program the result of compat_call above 16 bits, and ENTRY_COMPAT
};

#define ENTRY_COMPAT (1ULL << 32)

struct slot { // a cache line, so that neighbours do not disturb each other
	struct entry entry;
	u64 calls; // STACKS_EVERY
	u64 pad[3];
};

struct slot slots[CPUS];

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct entry);
} away SEC(".maps");

// A call that returns. Not on the stack: older kernels, such as 6.1, limit it to 512 bytes for a
// chain of functions.
struct scratch_call {
	struct call_event call;
	struct call_second_file second;
	struct call_mapping mapping;
	u64 stack; // not in registers, like the next two: the verifier would follow all their possible values
	u64 arguments[8];
	u32 flags, paths_bytes;
	char paths[2 * (PATH_MAX + 64)];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch_call);
} scratch_calls SEC(".maps");

static __always_inline struct scratch_call *this_scratch(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&scratch_calls, &zero);
}

// A task as a number: the only arithmetic on pointers that the verifier allows is their difference.
static __always_inline u64 number_of(struct task_struct *task)
{
	return (u64)task - (u64)&config;
}

static __always_inline struct slot *this_slot(void)
{
	u32 cpu = bpf_get_smp_processor_id();

	if (cpu >= CPUS)
		return 0;
	// Older verifiers, such as that of 6.1, forget the comparison if the compiler compares a
	// copy.
	asm volatile("%0 &= %1" : "+r"(cpu) : "i"(CPUS - 1));
	return &slots[cpu];
}

static __always_inline u64 argument(struct scratch_call *scratch, u8 index)
{
	return scratch->arguments[index & 7];
}

// The arguments of the call that returns, in the layout of 64-bit programs.
static __always_inline void take_arguments(struct scratch_call *scratch, struct pt_regs *regs)
{
	scratch->arguments[0] = regs->di;
	scratch->arguments[1] = regs->si;
	scratch->arguments[2] = regs->dx;
	scratch->arguments[3] = regs->r10;
	scratch->arguments[4] = regs->r8;
	scratch->arguments[5] = regs->r9;
}

// The same for a 32-bit program. Returns the result.
static __always_inline long take_compat_arguments(struct scratch_call *scratch, struct pt_regs *regs, u16 how, long result)
{
	u64 *arguments = scratch->arguments;
	u32 words[6] = {};

	arguments[0] = (u32)regs->bx;
	arguments[1] = (u32)regs->cx;
	arguments[2] = (u32)regs->dx;
	arguments[3] = (u32)regs->si;
	arguments[4] = (u32)regs->di;
	arguments[5] = (u32)regs->bp;
	if (how == COMPAT_PAGES) {
		arguments[5] <<= 12;
	} else if (how == COMPAT_HALVES_FROM_FOURTH) {
		arguments[3] |= arguments[4] << 32;
	} else if (how == COMPAT_HALVES_FROM_SECOND) {
		arguments[1] |= arguments[2] << 32;
	} else if (how == COMPAT_LONG_SEEK) {
		// _llseek(fd, high, low, &result, whence)
		if (!result)
			bpf_probe_read_user(&result, sizeof(result), (void *)arguments[3]);
		arguments[1] = arguments[1] << 32 | arguments[2];
		arguments[2] = arguments[4];
	} else if (how == COMPAT_SOCKETS || how == COMPAT_IN_MEMORY) {
		void *list = (void *)(how == COMPAT_SOCKETS ? arguments[1] : arguments[0]);
		// Some socket calls have fewer arguments, which may be at the end of the mapped
		// memory.
		if (bpf_probe_read_user(words, sizeof(words), list))
			bpf_probe_read_user(words, 3 * sizeof(words[0]), list);
		for (int i = 0; i < 6; i++)
			arguments[i] = words[i];
	}
	return result;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(enter, struct pt_regs *regs, long number)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct slot *slot = this_slot();

	if (!slot || !is_wanted(task) || (u64)number >= CALLS)
		return 0;
	u64 first = regs->di, kept = number;
	if (is_compat(task)) {
		first = (u32)regs->bx;
		kept = compat_call(number, first);
		number = kept & COMPAT_NUMBER;
		kept = kept << 16 | number | ENTRY_COMPAT;
	}
	const volatile struct shape *shape = &config.shapes[number & (CALLS - 1)];
	if (!shape->recorded)
		return 0;
	if (config.pid_namespace && shape->flags & SHAPE_EXEC)
		keep_exec_tid(task);
	slot->entry.task = number_of(task);
	slot->entry.number = kept;
	slot->entry.file = 0;
	if (shape->flags & SHAPE_FILE_BEFORE) {
		s64 position;
		slot->entry.file = file_at(first, bpf_ktime_get_ns(), &position); // close(2)
	}
	slot->entry.start_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(leave_cpu, bool preempt, struct task_struct *from, struct task_struct *to)
{
	struct slot *slot = this_slot();

	if (!slot || !slot->entry.task)
		return 0;
	if (slot->entry.task == number_of(from)) {
		struct entry *kept = bpf_task_storage_get(&away, from, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (kept)
			*kept = slot->entry;
		else
			lose(EVENT_CALL);
	}
	slot->entry.task = 0;
	return 0;
}

// Get the entry of the current call of this thread; false: it was not seen.
static __always_inline bool take_entry(struct task_struct *task, struct entry *entry)
{
	struct slot *slot = this_slot();

	if (slot && slot->entry.task == number_of(task)) {
		*entry = slot->entry;
		slot->entry.task = 0;
		return 1;
	}
	if (!is_wanted(task))
		return 0;
	struct entry *kept = bpf_task_storage_get(&away, task, 0, 0);
	if (!kept || !kept->task)
		return 0;
	*entry = *kept;
	kept->task = 0;
	return 1;
}

// Read a path argument to the scratch, at `at`. Returns the length of its block.
static __noinline u32 read_path(struct scratch_call *scratch, u32 at, const void *text, u64 base)
{
	struct call_path *block;

	if (at > PATH_MAX + 32)
		return 0;
	block = (void *)scratch->paths + at;
	block->base = base;
	block->flags = 0;
	long length = bpf_probe_read_user_str(block->bytes, PATH_MAX, text);
	if (length < 0)
		block->flags = 1;
	if (length <= 0) // older kernels, such as 6.1, return 0 for an empty text, which has one byte
		length = 1;
	block->length = length - 1;
	return (sizeof(*block) + (length - 1) + 7) & ~7u & 0x1fff;
}

static __always_inline bool is_relative(struct scratch_call *scratch, u32 at)
{
	return at <= PATH_MAX && scratch->paths[at + sizeof(struct call_path)] != '/';
}

static __always_inline u32 path_argument(
	struct scratch_call *scratch, u32 at, u8 directory, u8 path, u64 now_ns)
{
	u32 length = read_path(scratch, at, (void *)argument(scratch, path), 0);

	if (length && is_relative(scratch, at)) {
		struct call_path *block = (void *)scratch->paths + at;
		block->base = base_of(directory == NONE ? AT_FDCWD : (int)argument(scratch, directory), now_ns);
	}
	return length;
}

#define PARTS 8            // parts of a vector that are read at once
#define PARTS_AT_MOST 1024 // the kernel's limit

struct vector {
	u64 parts, number; // address and length
	s64 bytes;
};

// Add the lengths of the parts from `index * PARTS` on. Returns 1 at the end.
static __noinline long add_parts(u32 index, struct vector *vector)
{
	struct iovec parts[PARTS];
	u64 done = (u64)index * PARTS;

	if (done >= vector->number)
		return 1;
	u64 left = vector->number - done;
	if (left > PARTS)
		left = PARTS;
	if (bpf_probe_read_user(parts, sizeof(parts[0]) * (left & 15), (void *)(vector->parts + done * sizeof(parts[0])))) {
		vector->bytes = -1;
		return 1;
	}
	for (int i = 0; i < PARTS; i++)
		if (i < left)
			vector->bytes += parts[i].length;
	return 0;
}

__noinline s64 vector_bytes(u64 parts, u64 number)
{
	struct vector vector = { .parts = parts, .number = number };

	if (number > PARTS_AT_MOST)
		return -1;
	if (number <= PARTS)
		add_parts(0, &vector);
	else if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop))
		bpf_loop(PARTS_AT_MOST / PARTS, add_parts, &vector, 0);
	else // before 5.17
		vector.bytes = -1;
	return vector.bytes;
}

// The same for a 32-bit program, whose parts have two 32-bit words.
static __noinline long add_compat_parts(u32 index, struct vector *vector)
{
	u32 parts[2 * PARTS] = {};
	u64 done = (u64)index * PARTS;

	if (done >= vector->number)
		return 1;
	u64 left = vector->number - done;
	if (left > PARTS)
		left = PARTS;
	if (bpf_probe_read_user(parts, 2 * sizeof(parts[0]) * (left & 15), (void *)(vector->parts + done * 2 * sizeof(parts[0])))) {
		vector->bytes = -1;
		return 1;
	}
	for (int i = 0; i < PARTS; i++)
		if (i < left)
			vector->bytes += parts[2 * i + 1];
	return 0;
}

__noinline s64 compat_vector_bytes(u64 parts, u64 number)
{
	struct vector vector = { .parts = parts, .number = number };

	if (number > PARTS_AT_MOST)
		return -1;
	if (number <= PARTS)
		add_compat_parts(0, &vector);
	else if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop))
		bpf_loop(PARTS_AT_MOST / PARTS, add_compat_parts, &vector, 0);
	else // before 5.17
		vector.bytes = -1;
	return vector.bytes;
}

__noinline s64 compat_message_bytes(u64 header)
{
	u32 vector[2]; // msg_iov, msg_iovlen

	if (bpf_probe_read_user(vector, sizeof(vector), (void *)(header + 8)))
		return -1;
	return compat_vector_bytes(vector[0], vector[1]);
}

// Number of bytes that a message has, or has room for.
__noinline s64 message_bytes(u64 header)
{
	u64 vector[2]; // msg_iov, msg_iovlen

	if (bpf_probe_read_user(vector, sizeof(vector), (void *)(header + 16)))
		return -1;
	return vector_bytes(vector[0], vector[1]);
}

#define MESSAGES 8             // messages of an array, read without a loop of the kernel
#define MESSAGES_AT_MOST 65536 // sendmmsg takes 1,024; recvmmsg any number

struct messages {
	u64 next;       // address of the next msg_len
	u64 left, size; // number of messages left; bytes from one to the next
	s64 bytes;
};

// Add msg_len of the next messages. Returns 1 at the end.
static __noinline long add_messages(u32 index, struct messages *messages)
{
	u32 length;

	for (int i = 0; i < MESSAGES; i++) {
		if (!messages->left)
			return 1;
		if (bpf_probe_read_user(&length, sizeof(length), (void *)messages->next)) {
			messages->bytes = -1;
			return 1;
		}
		messages->bytes += length;
		messages->next += messages->size;
		messages->left--;
	}
	return 0;
}

// Number of bytes of the first `number` messages, which were sent or received; -1: unknown.
__noinline s64 messages_bytes(u64 headers, s64 number, u32 compat)
{
	// struct mmsghdr: a message header of 56 bytes (28 for a 32-bit program), and msg_len,
	// padded to the size of a pointer.
	struct messages messages = { .next = headers + (compat ? 28 : 56), .left = number, .size = compat ? 32 : 64 };

	if (number < 0 || number > MESSAGES_AT_MOST)
		return -1;
	if (number <= MESSAGES)
		add_messages(0, &messages);
	else if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop))
		bpf_loop(MESSAGES_AT_MOST / MESSAGES, add_messages, &messages, 0);
	else // before 5.17
		messages.bytes = -1;
	return messages.bytes;
}

// enum fsconfig_command and enum landlock_rule_type are part of the interface to programs.
#define FSCONFIG_SET_PATH 3
#define FSCONFIG_SET_PATH_EMPTY 4
#define FSCONFIG_SET_FD 5
#define LANDLOCK_RULE_PATH_BENEATH 1

static __always_inline bool has_path(struct scratch_call *scratch, const volatile struct shape *shape)
{
	u32 command = argument(scratch, 1);

	if (shape->path == NONE || !(shape->flags & SHAPE_BY_COMMAND))
		return shape->path != NONE;
	return command == FSCONFIG_SET_PATH || command == FSCONFIG_SET_PATH_EMPTY;
}

// The descriptor of a call in which argument 1 determines the meaning of the others; -1: it uses a
// path.
static __noinline int fd_by_command(struct scratch_call *scratch, bool is_rule)
{
	u32 command = argument(scratch, 1);
	int fd = argument(scratch, 0), directory;

	if (!is_rule)
		return command == FSCONFIG_SET_FD ? (int)argument(scratch, 4) :
		       command == FSCONFIG_SET_PATH || command == FSCONFIG_SET_PATH_EMPTY ? -1 : fd;
	// struct landlock_path_beneath_attr: the allowed access, in 8 bytes, and the descriptor.
	if (command == LANDLOCK_RULE_PATH_BENEATH &&
	    !bpf_probe_read_user(&directory, sizeof(directory), (void *)(argument(scratch, 2) + 8)))
		fd = directory;
	return fd;
}

static __always_inline s64 offset_argument(struct scratch_call *scratch, u8 index, u16 flags, s64 position, bool is_short)
{
	s64 offset;

	if (index == NONE)
		return flags & SHAPE_POSITION ? position : -1;
	offset = argument(scratch, index);
	if (flags & SHAPE_OFFSET_POINTER) {
		void *pointer = (void *)offset;
		if (!pointer)
			return position;
		offset = 0;
		return bpf_probe_read_user(&offset, is_short ? 4 : sizeof(offset), pointer) ? -1 : offset;
	}
	return offset == -1 && (flags & SHAPE_POSITION) ? position : offset;
}

// Whether a copy uses the file position, although it has a pointer argument for an offset.
static __always_inline bool is_at_position(struct scratch_call *scratch, u8 index)
{
	return index == NONE || !argument(scratch, index);
}

// Write the parts after the fixed one; the paths in the scratch come last.
static __always_inline void write_call(
	struct call_event *fixed, struct scratch_call *scratch, u64 stack, u32 paths_length, u32 flags, u64 now_ns)
{
	struct ring *ring = this_ring();
	u64 position;
	u32 size = sizeof(*fixed);

	if (!ring)
		return;
	if (flags & CALL_SECOND_FILE)
		size += sizeof(struct call_second_file);
	if (flags & CALL_MAPPING)
		size += sizeof(struct call_mapping);
	u32 stack_at = size;
	if (flags & CALL_STACK)
		size += sizeof(stack);
	paths_length &= 0x3fff;
	if (paths_length > 2 * (PATH_MAX + 32))
		return;
	struct call_event *event = ring_take(ring, size + paths_length, EVENT_CALL, now_ns, &position);
	if (!event)
		return;
	event->start_ns = fixed->start_ns;
	event->duration_ns_and_number = fixed->duration_ns_and_number;
	event->tid = fixed->tid;
	event->fd = fixed->fd;
	event->result = fixed->result;
	event->file = fixed->file;
	event->offset = fixed->offset;
	event->extra = fixed->extra;
	if (flags & CALL_SECOND_FILE)
		*(struct call_second_file *)(event + 1) = scratch->second;
	if (flags & CALL_MAPPING) // never with a second file
		*(struct call_mapping *)(event + 1) = scratch->mapping;
	if (flags & CALL_STACK)
		*(u64 *)((void *)event + stack_at) = stack;
	if (flags & (CALL_PATH | CALL_SECOND_PATH))
		bpf_probe_read_kernel((void *)event + size, paths_length, scratch->paths);
	ring_give(&event->header, position, size + paths_length, EVENT_CALL, flags);
}

// The size that the call in the scratch asks for, or what else `count` of its shape means. A global
// function is verified once, not for each path to it; so are the next two.
__noinline u64 size_argument(u32 number, s64 result, u32 compat)
{
	struct scratch_call *scratch = this_scratch();
	const volatile struct shape *shape = &config.shapes[number & (CALLS - 1)];
	u16 flags = shape->flags;

	if (!scratch)
		return 0;
	u64 size = argument(scratch, shape->count);
	if (flags & SHAPE_VECTOR)
		return compat ? compat_vector_bytes(size, argument(scratch, shape->count + 1)) :
				vector_bytes(size, argument(scratch, shape->count + 1));
	if (flags & SHAPE_MESSAGE)
		return compat ? compat_message_bytes(size) : message_bytes(size);
	if (flags & SHAPE_MESSAGES)
		return messages_bytes(size, result, compat);
	if (flags & SHAPE_HOW)
		bpf_probe_read_user(&size, sizeof(size), (void *)size);
	return size;
}

// Write the call in the scratch.
__noinline int write_scratch(u64 now_ns)
{
	struct scratch_call *scratch = this_scratch();

	if (scratch)
		write_call(&scratch->call, scratch, scratch->stack, scratch->paths_bytes, scratch->flags, now_ns);
	return 0;
}

// Read the paths of the call in the scratch.
__noinline int read_paths(u32 number, u64 now_ns)
{
	struct scratch_call *scratch = this_scratch();
	const volatile struct shape *shape = &config.shapes[number & (CALLS - 1)];

	if (!scratch)
		return 0;
	struct call_event *call = &scratch->call;
	scratch->flags |= CALL_PATH;
	scratch->paths_bytes = path_argument(scratch, 0, shape->directory, shape->path, now_ns);
	// An empty path means the descriptor itself.
	struct call_path *block = (void *)scratch->paths;
	if (!block->length && !block->flags && shape->directory != NONE && call->fd < 0)
		call->fd = argument(scratch, shape->directory);
	if (shape->second_path != NONE) {
		scratch->flags |= CALL_SECOND_PATH;
		scratch->paths_bytes += path_argument(
			scratch, scratch->paths_bytes & 0x1fff, shape->second_directory, shape->second_path, now_ns);
	}
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(leave, struct pt_regs *regs, long result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct scratch_call *scratch;
	struct entry entry;
	s64 position = -1;

	// A child returns from the call that created it without an entry; so do calls in progress
	// when recording began.
	if (!take_entry(task, &entry))
		return 0;
	scratch = this_scratch();
	if (!scratch) {
		lose(EVENT_CALL);
		return 0;
	}
	bool compat = entry.number & ENTRY_COMPAT;
	u16 how = compat ? (u16)(entry.number >> 16) >> COMPAT_BITS : COMPAT_SAME;
	bool is_short = how == COMPAT_SHORT_OFFSETS;
	entry.number &= 0xffff;
	if (compat)
		result = take_compat_arguments(scratch, regs, how, result);
	else
		take_arguments(scratch, regs);
	scratch->stack = 0;
	scratch->flags = scratch->paths_bytes = 0;
	struct call_event *call = &scratch->call;
	struct call_second_file *second = &scratch->second;
	const volatile struct shape *shape = &config.shapes[entry.number & (CALLS - 1)];
	u16 shape_flags = shape->flags;
	// Read before the branches: between them, the verifier would check the access once for each path.
	bool has_threads = task->signal->nr_threads > 1;
	u64 now_ns = bpf_ktime_get_ns();

	call->start_ns = entry.start_ns;
	call->tid = tid_of(task);
	call->result = result;
	call->fd = -1;
	call->file = 0;
	call->offset = -1;
	call->extra = 0;
	if (shape_flags & SHAPE_NEW_FD && result >= 0)
		call->fd = result;
	else if (shape_flags & SHAPE_BY_COMMAND)
		call->fd = fd_by_command(scratch, shape->path == NONE);
	else if (shape->fd != NONE)
		call->fd = argument(scratch, shape->fd);
	if (shape_flags & SHAPE_FILE_BEFORE)
		call->file = entry.file;
	else if (call->fd >= 0)
		call->file = file_at(call->fd, now_ns, &position);
	if (shape->offset != NONE || shape_flags & SHAPE_POSITION)
		call->offset = offset_argument(scratch, shape->offset, shape_flags, position, is_short);
	// Threads may move the position, so it is read before the end of the call is reported: a
	// call that moved it meanwhile overlaps this one.
	if (shape_flags & SHAPE_POSITION && has_threads)
		now_ns = bpf_ktime_get_ns();
	call->duration_ns_and_number = (now_ns - entry.start_ns) << 16 | (entry.number < CALL_NUMBER ? entry.number : CALL_NUMBER);
	// The offset argument means the position: store the position before the call. It can only
	// be recognized here.
	if (shape->offset != NONE && (shape_flags & (SHAPE_POSITION | SHAPE_OFFSET_POINTER)) == SHAPE_POSITION &&
	    argument(scratch, shape->offset) == -1ULL) {
		call->duration_ns_and_number |= CALL_POSITIONS;
		if (result > 0 && call->offset >= result)
			call->offset -= result;
	}
	if (shape->count != NONE)
		call->extra = size_argument(entry.number, result, compat);
	if (shape->second_fd != NONE && !(shape_flags & SHAPE_PAIR)) {
		scratch->flags |= CALL_SECOND_FILE;
		second->file = file_at(argument(scratch, shape->second_fd), now_ns, &position);
		second->offset = offset_argument(scratch, shape->second_offset, shape_flags, position, is_short);
		second->fd = argument(scratch, shape->second_fd);
		second->at_position = (is_at_position(scratch, shape->offset) ? POSITION_OF_FIRST : 0) |
				      (is_at_position(scratch, shape->second_offset) ? POSITION_OF_SECOND : 0);
		call->duration_ns_and_number |= CALL_POSITIONS;
	}
	if (shape_flags & SHAPE_PAIR && result == 0) {
		int pair[2];
		if (!bpf_probe_read_user(pair, sizeof(pair), (void *)argument(scratch, shape->second_fd))) {
			scratch->flags |= CALL_SECOND_FILE;
			call->fd = pair[0];
			call->file = file_at(pair[0], now_ns, &position);
			second->file = file_at(pair[1], now_ns, &position);
			second->offset = pair[1];
			second->fd = pair[1];
			second->at_position = 0;
			call->duration_ns_and_number |= CALL_POSITIONS;
		}
	}
	if (shape_flags & SHAPE_MAPPING) {
		scratch->flags |= CALL_MAPPING;
		scratch->mapping.length = argument(scratch, 1);
		scratch->mapping.protection = argument(scratch, 2);
		scratch->mapping.flags = argument(scratch, 3);
		scratch->mapping.offset = argument(scratch, 5);
		if (config.layouts && scratch->mapping.protection & PROTECTION_EXEC && call->file && (u64)result < ~4095ULL)
			tell_mapped(result, &scratch->mapping, call->file, call->fd, now_ns);
	}
	if (has_path(scratch, shape) && !(shape_flags & SHAPE_EXEC && result == 0))
		read_paths(entry.number, now_ns);
	if (shape_flags & SHAPE_RENAMES && result == 0)
		count_rename();
	// Stacks are unwound like those of 64-bit programs.
	if (config.stacks && !compat && shape_flags & SHAPE_STACK && !(shape_flags & SHAPE_EXEC && result == 0)) {
		struct slot *slot = this_slot();
		if (slot && wants_stack(now_ns - entry.start_ns, &slot->calls))
			scratch->stack = stack_of(now_ns, 0);
		if (scratch->stack)
			scratch->flags |= CALL_STACK;
	}
	write_scratch(now_ns);
	if (shape_flags & (SHAPE_SUBMIT | SHAPE_REAP) && result > 0) {
		if (compat) { // its lists have pointers of another size
			lose(shape_flags & SHAPE_SUBMIT ? EVENT_AIO_SUBMIT : EVENT_AIO_DONE);
			return 0;
		}
		struct aio_call *aio = this_aio_call();
		if (!aio)
			return 0;
		aio->list = shape_flags & SHAPE_SUBMIT ? regs->dx : regs->r10;
		aio->context = regs->di;
		aio->start_ns = entry.start_ns;
		aio->now_ns = now_ns;
		aio->number = result;
		aio->tid = tid_of(task);
		aio_each(shape_flags & SHAPE_SUBMIT ? EVENT_AIO_SUBMIT : EVENT_AIO_DONE);
	}
	return 0;
}

// Calls that never return: exit, and the current call of a thread that is killed.
SEC("tp_btf/sched_process_exit")
int BPF_PROG(end_in_call, struct task_struct *task)
{
	struct call_event call = {};
	struct entry entry;

	if (!take_entry(task, &entry))
		return 0;
	u64 now_ns = bpf_ktime_get_ns();
	call.start_ns = entry.start_ns;
	call.duration_ns_and_number = (now_ns - entry.start_ns) << 16 | (entry.number & 0xffff);
	call.tid = tid_of(task);
	call.fd = -1;
	call.offset = -1;
	write_call(&call, 0, 0, 0, CALL_UNFINISHED, now_ns);
	return 0;
}
