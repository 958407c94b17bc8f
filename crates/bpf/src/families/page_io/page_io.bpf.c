// Requests of the page cache to block devices: reads of pages into the cache, and writeback of
// pages. One event for each request that enters the block layer (a bio), which is up to some MiB.
//
// A request names no file, but each of its pages is in the cache of an inode. Reads happen in the
// thread that needs the pages, including read-ahead; writeback is usually done by kernel threads,
// so for these the inode decides whether the request is recorded.

#include "bpf/kernel.h"
#include "events.h"
#include "bpf/ring.h"
#include "bpf/target.h"
#include "families/paths/inodes.h"
#include "pages.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PF_KTHREAD 0x200000
#define OPERATION_MASK 0xff
#define BIO_CLONED 1 // number of a bit

enum { REQ_OP_READ = 0, REQ_OP_WRITE = 1 };
enum req_flag_bits { __REQ_RAHEAD };

// Pages that are neighbours on the device may not be neighbours in the file: then there is no
// single offset, and the result is -1.
static __always_inline s64 offset_of_all(struct bio *bio, struct cached *begin, u32 bytes)
{
	struct bio_vec *vectors = BPF_CORE_READ(bio, bi_io_vec);
	u32 last = BPF_CORE_READ(bio, bi_vcnt) - 1;
	struct cached end = cached_at(vectors, last);
	struct bio_vec *vector = vector_at(vectors, last);

	end.offset += BPF_CORE_READ(vector, bv_len);
	return end.inode == begin->inode && end.offset - begin->offset == bytes ? (s64)begin->offset : -1;
}

static __always_inline u32 flags_of(struct bio *bio, struct inode *inode)
{
	u32 flags = 0;

	if ((bio->bi_opf & OPERATION_MASK) == REQ_OP_WRITE)
		flags |= PAGE_IO_WRITE;
	if (bio->bi_opf >> bpf_core_enum_value(enum req_flag_bits, __REQ_RAHEAD) & 1)
		flags |= PAGE_IO_AHEAD;
	if (!inode)
		flags |= PAGE_IO_MEMORY;
	else if (is_of_device(inode))
		flags |= PAGE_IO_DEVICE;
	return flags;
}

// Whether the request is to be recorded, and its thread; 0: none that is recorded.
static __always_inline bool is_ours(struct task_struct *task, u32 flags, u64 file, u32 *tid)
{
	bool is_kernel = task->flags & PF_KTHREAD;

	*tid = 0;
	if (!is_kernel && is_wanted(task)) {
		*tid = tid_of(task);
		return 1;
	}
	// Reads of other programs are not recorded; writeback may be of data that any process
	// wrote.
	if (!is_kernel && !(flags & PAGE_IO_WRITE))
		return 0;
	if (!file && !(flags & (PAGE_IO_DEVICE | PAGE_IO_MEMORY)) && are_inodes_left_out())
		lose(EVENT_PAGE_IO); // may have been one to record
	return file != 0;
}

static __always_inline int write_event(struct bio *bio, struct cached *begin, u32 bytes)
{
	struct inode_key key = {};
	struct page_io_event *event;
	u64 file = 0, position;
	struct ring *ring = this_ring();
	struct inode *inode = begin->inode;
	u32 flags = flags_of(bio, inode), tid;

	if (inode) {
		key = key_of_inode(inode);
		file = id_of_inode(&key);
	}
	if (!is_ours(bpf_get_current_task_btf(), flags, file, &tid) || !ring)
		return 0;
	u64 now_ns = bpf_ktime_get_ns();
	event = ring_take(ring, sizeof(*event), EVENT_PAGE_IO, now_ns, &position);
	if (!event)
		return 0;
	event->at_ns = now_ns;
	event->file = file;
	event->inode = key.number;
	event->offset = inode ? offset_of_all(bio, begin, bytes) : -1;
	event->device = key.device;
	event->bytes = bytes;
	event->tid = tid;
	event->pad = 0;
	ring_give(&event->header, position, sizeof(*event), EVENT_PAGE_IO, flags);
	return 0;
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(queue_pages, struct bio *bio)
{
	u32 bytes = bio->bi_iter.bi_size;

	if ((bio->bi_opf & OPERATION_MASK) > REQ_OP_WRITE || !bytes)
		return 0;
	// Lower layers (a volume manager, a loop device) pass the same pages on in copies of the
	// request.
	if (bio->bi_flags >> BIO_CLONED & 1 || !bio->bi_vcnt)
		return 0;
	// Read as a number: the verifier of 6.1 adds no unknown value to a pointer of the kernel.
	struct cached begin = cached_at(BPF_CORE_READ(bio, bi_io_vec), bio->bi_iter.bi_idx);
	begin.offset += bio->bi_iter.bi_bvec_done;
	return write_event(bio, &begin, bytes);
}
