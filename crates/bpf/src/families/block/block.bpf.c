// Requests to block devices: one event for each, at its completion, with the times at which it was
// queued, issued to the driver and completed.
//
// A request is identified by its address. It is in one of three states:
//
//   not there      not seen yet
//   queued         issued_ns is 0: it waits in the queue of the device, or for a flush
//   issued         the driver has it
//
// queued: when started (Linux 6.5), inserted (before), or issued if neither was seen. queued ->
// issued: issued. issued -> queued: requeued, when the driver had no room. -> not there: completed,
// or merged into another one.
//
// An interrupt may complete or issue requests while a program here runs on its CPU. The kernel does
// not run a program recursively, so that request is missed; the next program that sees it finds it
// in the wrong state and counts it as lost.

#include "bpf/kernel.h"
#include "bpf/ring.h"
#include "bpf/target.h"
#include "bpf/task.h"
#include "events.h"
#include "families/page_io/pages.h"
#include "families/paths/inodes.h"
#include "requests.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define OPERATION_MASK 0xff
#define MOST_REQUESTS 16384
#define MOST_QUEUES 1024

// A request that is not completed yet.
struct open_request {
	u64 queued_ns, issued_ns;
	u64 sector, file, inode;
	u32 inode_device, bytes, flags, tid, depth;
	s32 error;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_REQUESTS);
	__type(key, u64); // its address
	__type(value, struct open_request);
} open_requests SEC(".maps");

// The queue of a device.
struct queue {
	u64 in_flight; // requests that the driver has
	u64 flush_tid; // the thread that requested the last flush; 0: none that is recorded
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_QUEUES);
	__type(key, u64); // its address
	__type(value, struct queue);
} queues SEC(".maps");

// There was no room for a request at some time: from then on, a request that was not seen before
// its completion may be newer than the recording.
bool was_full = 0;

static __always_inline struct queue *queue_at(u64 key)
{
	struct queue none = {}, *queue = bpf_map_lookup_elem(&queues, &key);

	if (queue)
		return queue;
	bpf_map_update_elem(&queues, &key, &none, BPF_ANY);
	return bpf_map_lookup_elem(&queues, &key);
}

static __always_inline u32 operation_of(struct request *rq)
{
	return rq->cmd_flags & OPERATION_MASK;
}

// Without branches, because the verifier would follow each of them.
#define FLAG(bits, name, flag) (((bits) >> bpf_core_enum_value(enum req_flag_bits, __REQ_##name) & 1) * (flag))

static __always_inline u32 flags_of(u32 bits)
{
	return FLAG(bits, SYNC, BLOCK_SYNC) | FLAG(bits, META, BLOCK_META) | FLAG(bits, RAHEAD, BLOCK_AHEAD) | FLAG(bits, FUA, BLOCK_FUA) |
	       FLAG(bits, PREFLUSH, BLOCK_PREFLUSH);
}

// Find the pages of a part of a request; returns 1 if they are known.
static __noinline int find_pages(struct bio *bio, struct open_request *request)
{
	struct bio_vec *vector = vector_at(BPF_CORE_READ(bio, bi_io_vec), BPF_CORE_READ(bio, bi_iter.bi_idx));
	struct inode *inode = inode_of(folio_of(BPF_CORE_READ(vector, bv_page)));

	request->flags &= ~(BLOCK_MEMORY | BLOCK_DEVICE);
	if (!inode) {
		request->flags |= BLOCK_MEMORY;
		return 0;
	}
	struct inode_key key = key_of_inode(inode);
	if (is_of_device(inode))
		request->flags |= BLOCK_DEVICE;
	request->inode = key.number;
	request->inode_device = key.device;
	request->file = id_of_inode(&key);
	return request->file != 0;
}

// Find the file whose pages a request carries. Merged neighbours may be of several files: then the
// first part decides, or the last one if only that is of a recorded file.
static __always_inline void find_file(struct request *rq, struct open_request *request)
{
	struct bio *first = rq->bio, *last = rq->biotail;

	if (operation_of(rq) > REQ_OP_WRITE || !rq->__data_len || !first)
		return;
	if (!find_pages(first, request) && last != first)
		find_pages(last, request);
}

static __always_inline bool is_read(struct request *rq)
{
	return operation_of(rq) == REQ_OP_READ;
}

// Whether the request is to be recorded. Reads of other programs are not; writeback may be of data
// that any process wrote.
static __always_inline bool is_ours(struct request *rq, struct open_request *request)
{
	if (config.target == TARGET_ALL || request->tid)
		return 1;
	if (request->flags & BLOCK_FOREIGN && is_read(rq))
		return 0;
	return request->file != 0;
}

// Whether the request may have been one to record, as far as it is known.
static __always_inline bool may_be_ours(struct request *rq, struct open_request *request)
{
	if (operation_of(rq) > REQ_OP_WRITE || (request->flags & BLOCK_FOREIGN && is_read(rq)))
		return 0;
	if (request->flags & BLOCK_MEMORY)
		return request->flags & BLOCK_UNSEEN;
	return !(request->flags & BLOCK_DEVICE) && are_inodes_left_out();
}

static __always_inline void count_lost(struct request *rq, struct open_request *request)
{
	if (is_ours(rq, request))
		lose(EVENT_BLOCK);
}

// Account for a request that leaves the driver.
static __always_inline void leave_driver(struct request *rq, struct open_request *request)
{
	struct queue *queue = queue_at((u64)rq->q);

	if (queue && request->depth)
		__sync_fetch_and_add(&queue->in_flight, (u64)-1);
	request->issued_ns = 0;
	request->depth = 0;
}

// Begin a request when it is queued. `flags`: flags that depend on who queued it.
static __always_inline void begin(struct request *rq, struct open_request *request)
{
	u64 key = (u64)rq;
	struct open_request *old = bpf_map_lookup_elem(&open_requests, &key);

	request->flags |= flags_of(rq->cmd_flags);
	// The same address is used again, so its completion was missed.
	if (old && old->issued_ns) {
		leave_driver(rq, old);
		count_lost(rq, old);
	}
	if (!bpf_map_update_elem(&open_requests, &key, request, BPF_ANY))
		return;
	was_full = 1;
	find_file(rq, request);
	count_lost(rq, request);
}

// The current thread has queued it.
static __always_inline void name_thread(struct open_request *request)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (task->flags & PF_KTHREAD)
		return;
	if (is_wanted(task))
		request->tid = tid_of(task);
	else
		request->flags |= BLOCK_FOREIGN;
}

// The flush itself is a separate request, on behalf of all threads that wait for one.
static __always_inline void want_flush(u64 queue_key, u32 tid)
{
	struct queue *queue = queue_at(queue_key);

	if (queue)
		queue->flush_tid = tid;
}

SEC("tp_btf/block_io_start")
int BPF_PROG(started, struct request *rq)
{
	struct open_request request = { .queued_ns = bpf_ktime_get_ns() };

	name_thread(&request);
	begin(rq, &request);
	if (request.flags & (BLOCK_PREFLUSH | BLOCK_FUA))
		want_flush((u64)rq->q, request.tid);
	return 0;
}

// Before Linux 6.5: the time at which the kernel created the request.
static __always_inline u64 made_ns(struct request *rq)
{
	return rq->start_time_ns ? rq->start_time_ns : bpf_ktime_get_ns();
}

SEC("tp_btf/block_rq_insert")
int BPF_PROG(inserted, struct request *rq)
{
	struct open_request request = { .queued_ns = made_ns(rq) };
	u64 key = (u64)rq;

	if (bpf_map_lookup_elem(&open_requests, &key))
		return 0; // the driver has requeued it
	name_thread(&request);
	begin(rq, &request);
	return 0;
}

SEC("tp_btf/block_getrq")
int BPF_PROG(wanted, struct bio *bio)
{
	struct open_request request = {};
	struct bio___of_device *of_device = (void *)bio;

	if (!(flags_of(bio->bi_opf) & (BLOCK_PREFLUSH | BLOCK_FUA)))
		return 0;
	name_thread(&request);
	want_flush((u64)BPF_CORE_READ(of_device, bi_bdev, bd_disk, queue), request.tid);
	return 0;
}

// A request that no program saw before it was issued: a flush; before Linux 6.5 a request that its
// thread issued directly; otherwise one that was queued before recording began.
static __always_inline void begin_late(struct request *rq)
{
	struct open_request request = { .queued_ns = made_ns(rq) };

	if (operation_of(rq) != REQ_OP_FLUSH) {
		if (bpf_core_type_exists(btf_trace_block_io_start))
			request.flags = BLOCK_UNSEEN;
		else
			name_thread(&request);
	}
	if (!was_full)
		begin(rq, &request);
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(issued, struct request *rq)
{
	struct queue *queue = queue_at((u64)rq->q);
	struct open_request *request;
	u64 key = (u64)rq;

	request = bpf_map_lookup_elem(&open_requests, &key);
	if (!request) {
		begin_late(rq);
		request = bpf_map_lookup_elem(&open_requests, &key);
	}
	if (!request || !queue)
		return 0;
	if (!request->depth)
		request->depth = __sync_fetch_and_add(&queue->in_flight, 1) + 1;
	request->issued_ns = bpf_ktime_get_ns();
	request->flags |= flags_of(rq->cmd_flags);
	if (operation_of(rq) == REQ_OP_FLUSH)
		request->tid = queue->flush_tid;
	// If the driver returned part of it, the rest is smaller.
	if (!request->bytes || rq->__data_len > request->bytes) {
		request->sector = rq->__sector;
		request->bytes = rq->__data_len;
		find_file(rq, request);
	}
	return 0;
}

SEC("tp_btf/block_rq_requeue")
int BPF_PROG(requeued, struct request *rq)
{
	u64 key = (u64)rq;
	struct open_request *request = bpf_map_lookup_elem(&open_requests, &key);

	if (request)
		leave_driver(rq, request);
	return 0;
}

SEC("tp_btf/block_rq_merge")
int BPF_PROG(merged, struct request *rq)
{
	u64 key = (u64)rq;

	bpf_map_delete_elem(&open_requests, &key);
	return 0;
}

static __always_inline void write_event(struct request *rq, struct open_request *request)
{
	struct ring *ring = this_ring();
	u64 position, now_ns = bpf_ktime_get_ns();
	struct block_event *event;

	if (!ring)
		return;
	event = ring_take(ring, sizeof(*event), EVENT_BLOCK, now_ns, &position);
	if (!event)
		return;
	event->at_ns = now_ns;
	event->queued_ns = request->queued_ns;
	event->issued_ns = request->issued_ns ? request->issued_ns : now_ns;
	event->sector = request->sector;
	event->file = request->file;
	event->inode = request->inode;
	event->inode_device = request->inode_device;
	event->bytes = request->bytes;
	event->operation = operation_of(rq);
	event->flags = request->flags;
	event->error = request->error;
	event->tid = request->tid;
	event->depth = request->depth;
	event->pad = 0;
	bpf_probe_read_kernel(event->device, sizeof(event->device), BPF_CORE_READ(rq, q, disk, disk_name));
	ring_give(&event->header, position, sizeof(*event), EVENT_BLOCK, 0);
}

// A request that was issued before recording began.
static __always_inline void count_unseen(struct request *rq)
{
	struct open_request request = { .flags = BLOCK_UNSEEN };

	if (was_full)
		return; // counted as lost
	find_file(rq, &request);
	count_lost(rq, &request);
}

// A request without bytes that waited for a flush completes twice.
SEC("tp_btf/block_rq_complete")
int BPF_PROG(completed, struct request *rq, s32 error, u32 bytes)
{
	u64 key = (u64)rq;
	struct open_request *request = bpf_map_lookup_elem(&open_requests, &key);

	if (request && error)
		request->error = error;
	if (rq->__data_len > bytes)
		return 0; // the rest comes later
	if (!request) {
		if (bytes)
			count_unseen(rq);
		return 0;
	}
	if (!request->bytes) { // it was never issued to the driver
		request->sector = rq->__sector;
		request->bytes = bytes;
	}
	// A request for a flush only is never issued.
	if (request->issued_ns || (bytes && error)) {
		if (is_ours(rq, request))
			write_event(rq, request);
		else if (may_be_ours(rq, request))
			lose(EVENT_BLOCK);
	} else if (bytes) {
		count_lost(rq, request);
	}
	if (request->issued_ns)
		leave_driver(rq, request);
	bpf_map_delete_elem(&open_requests, &key);
	return 0;
}
