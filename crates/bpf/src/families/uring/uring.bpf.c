// Requests of io_uring, which are not system calls: one event for each, written at its completion,
// with the number of the equivalent call.

#include "bpf/kernel.h"
#include "families/calls/events.h"
#include "bpf/ring.h"
#include "bpf/target.h"
#include "families/paths/files.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

// enum io_uring_op is part of the interface to programs: its numbers do not change.
enum op { READV = 1, WRITEV, FSYNC, READ_FIXED, WRITE_FIXED, POLL_ADD, SYNC_FILE_RANGE = 8, SENDMSG, RECVMSG, ACCEPT = 13, CONNECT = 16,
	FALLOCATE, OPENAT, CLOSE, STATX = 21, READ, WRITE, FADVISE, MADVISE, SEND, RECV, OPENAT2, SPLICE = 30, SHUTDOWN = 34, RENAMEAT,
	UNLINKAT, MKDIRAT, SYMLINKAT, LINKAT, OPS = 64 };

static const volatile u16 numbers[OPS] = {
	[READV] = 295, [WRITEV] = 296, [FSYNC] = 74, [READ_FIXED] = 17, [WRITE_FIXED] = 18, [POLL_ADD] = 7, [SYNC_FILE_RANGE] = 277,
	[SENDMSG] = 46, [RECVMSG] = 47, [ACCEPT] = 288, [CONNECT] = 42, [FALLOCATE] = 285, [OPENAT] = 257, [CLOSE] = 3, [STATX] = 332,
	[READ] = 17, [WRITE] = 18, [FADVISE] = 221, [MADVISE] = 28, [SEND] = 44, [RECV] = 45, [OPENAT2] = 437, [SPLICE] = 275,
	[SHUTDOWN] = 48, [RENAMEAT] = 316, [UNLINKAT] = 263, [MKDIRAT] = 258, [SYMLINKAT] = 266, [LINKAT] = 265,
};

struct request {
	u64 start_ns;
	s64 offset;
	s64 requested;
	u64 file; // file of CLOSE, which is gone at the completion
	u32 tid;
	s32 fd;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536); // requests in progress
	__type(key, u64);
	__type(value, struct request);
} requests SEC(".maps");

#define PATH_MAX 4096

// The path of an open, as a block of its event. The ring's own copy is gone at the completion, but
// only then is it known that the open failed, so that no file identifies it.
struct kept_path {
	u64 size; // length of the block
	char block[sizeof(struct call_path) + PATH_MAX + 8];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096); // opens in progress with a path; others have none
	__type(key, u64);
	__type(value, struct kept_path);
} kept_paths SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct kept_path);
} scratch_names SEC(".maps");

static __noinline int keep_path(u64 key, struct io_open *opening, u64 now_ns)
{
	u32 zero = 0;
	struct kept_path *kept = bpf_map_lookup_elem(&scratch_names, &zero);
	struct filename *name;

	if (!kept || !bpf_core_field_exists(opening->filename))
		return 0;
	struct call_path *path = (void *)kept->block;
	name = BPF_CORE_READ(opening, filename);
	long length = bpf_probe_read_kernel_str(path->bytes, PATH_MAX, BPF_CORE_READ(name, name));
	if (length <= 0)
		return 0;
	path->length = length - 1;
	path->flags = 0;
	path->base = path->bytes[0] == '/' ? 0 : base_of(BPF_CORE_READ(opening, dfd), now_ns);
	kept->size = (sizeof(*path) + (length - 1) + 7) & ~7u & 0x1fff;
	bpf_map_update_elem(&kept_paths, &key, kept, BPF_ANY);
	return 0;
}

static __always_inline bool opens(u8 op)
{
	return op == OPENAT || op == OPENAT2;
}

static __always_inline bool moves_bytes(u8 op)
{
	return op == READ || op == WRITE || op == READ_FIXED || op == WRITE_FIXED || op == READV || op == WRITEV;
}

static __always_inline void begin(struct io_kiocb *submission)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct request request = { .offset = -1 };
	struct io_kiocb *pointer = submission;
	u8 op = submission->opcode;
	u64 key;

	if (!is_wanted(task))
		return;
	// A number, as at the completion: the verifier would not store a pointer as a key.
	bpf_probe_read_kernel(&key, sizeof(key), &pointer);
	request.start_ns = bpf_ktime_get_ns();
	request.tid = tid_of(task);
	request.fd = submission->cqe.fd;
	if (moves_bytes(op)) {
		struct io_rw *transfer = (void *)submission;
		request.offset = BPF_CORE_READ(transfer, kiocb.ki_pos);
		// For vectors, len is the number of buffers.
		request.requested = op == READV || op == WRITEV ? -1 : (s64)BPF_CORE_READ(transfer, len);
	}
	if (op == CLOSE) {
		struct io_close *closing = (void *)submission;
		s64 unused;
		request.fd = BPF_CORE_READ(closing, fd);
		request.file = file_at(request.fd, request.start_ns, &unused);
	}
	if (opens(op))
		keep_path(key, (void *)submission, request.start_ns);
	if (bpf_map_update_elem(&requests, &key, &request, BPF_ANY))
		lose(EVENT_CALL);
}

// One of these two programs is loaded, and one of the two for the completion: the one that fits the
// kernel's tracepoint.
SEC("tp_btf/io_uring_submit_req")
int BPF_PROG(submitted, struct io_kiocb *submission)
{
	begin(submission);
	return 0;
}

SEC("tp_btf/io_uring_submit_sqe")
int BPF_PROG(submitted_early, struct io_kiocb *submission)
{
	begin(submission);
	return 0;
}

static __always_inline void end(struct io_kiocb *submission, s32 result)
{
	u64 key = (u64)submission, position, now_ns;
	struct ring *ring = this_ring();
	struct place place = {};
	struct request *request;
	struct call_event *event;
	u64 file = 0;
	s64 unused;

	request = bpf_map_lookup_elem(&requests, &key);
	if (!request || !ring)
		return;
	now_ns = bpf_ktime_get_ns();
	u8 op = BPF_CORE_READ(submission, opcode);
	s32 fd = request->fd;
	if (op == CLOSE) {
		file = request->file;
	} else if (opens(op) && result >= 0) {
		// Workers of the ring share the descriptors of the process that submitted. Without
		// a descriptor (`file_index`) nothing names the file.
		fd = result;
		file = file_at(fd, now_ns, &unused);
	} else if (place_of_file(&place, BPF_CORE_READ(submission, file), &unused)) {
		file = report_file(&place, now_ns);
	} else {
		// Operations on paths, timeouts and the like: the ring knows no descriptor.
		fd = -1;
	}
	struct kept_path *kept = opens(op) && result < 0 ? bpf_map_lookup_elem(&kept_paths, &key) : 0;
	u64 path_bytes = kept ? at_most(kept->size, sizeof(kept->block)) : 0;
	event = ring_take(ring, sizeof(*event) + path_bytes, EVENT_CALL, now_ns, &position);
	if (event) {
		u64 number = op < OPS ? numbers[op] : 0;
		event->start_ns = request->start_ns;
		event->duration_ns_and_number = (now_ns - request->start_ns) << 16 | (number ?: RING_CALL);
		event->tid = request->tid;
		event->fd = fd;
		event->result = result;
		event->file = file;
		event->offset = request->offset;
		event->extra = request->requested;
		if (kept)
			bpf_probe_read_kernel(event + 1, path_bytes, kept->block);
		ring_give(&event->header, position, sizeof(*event) + path_bytes, EVENT_CALL, CALL_RING | (kept ? CALL_PATH : 0));
	}
	bpf_map_delete_elem(&requests, &key);
	if (opens(op))
		bpf_map_delete_elem(&kept_paths, &key);
}

SEC("tp_btf/io_uring_complete")
int BPF_PROG(completed, void *context, struct io_kiocb *submission, struct io_uring_cqe *completion)
{
	end(submission, completion->res);
	return 0;
}

SEC("tp_btf/io_uring_complete")
int BPF_PROG(completed_early, void *context, struct io_kiocb *submission, u64 user_data, s32 result)
{
	end(submission, result);
	return 0;
}
