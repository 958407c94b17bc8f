// Fields of requests to block devices that the programs read, in addition to those in bpf/kernel.h.
#pragma once

#include "bpf/kernel.h"

enum { REQ_OP_READ = 0, REQ_OP_WRITE = 1, REQ_OP_FLUSH = 2 };
enum req_flag_bits { __REQ_SYNC, __REQ_META, __REQ_FUA, __REQ_PREFLUSH, __REQ_RAHEAD };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct gendisk {
	char disk_name[32];
	struct request_queue *queue;
};

struct request_queue {
	struct gendisk *disk;
};

struct block_device {
	struct gendisk *bd_disk;
};

struct request {
	struct request_queue *q;
	u32 cmd_flags, __data_len;
	u64 __sector;
	struct bio *bio, *biotail;
	u64 start_time_ns;
};

struct bio___of_device { // the same as bio
	struct block_device *bi_bdev;
};

#pragma clang attribute pop

// Since Linux 6.5, like the tracepoint.
typedef void (*btf_trace_block_io_start)(void *, struct request *);
