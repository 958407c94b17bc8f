// Operations of libaio: io_submit submits any number of them, io_getevents returns their results.
//
// There is no tracepoint in between, so both are read at the return of these calls. If a program
// reads results directly from the shared completion ring, the end of its operations is not seen.
#pragma once

#include "bpf/kernel.h"
#include "events.h"
#include "bpf/ring.h"
#include "families/paths/files.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define AIO_AT_MOST 65536 // in one call
#define AIO_EARLY 8       // before 5.17, which has no bpf_loop

struct aio_block { // struct iocb of linux/aio_abi.h
	u64 data;
	u32 key, flags;
	u16 opcode;
	u16 priority;
	u32 fd;
	u64 buffer, bytes;
	s64 offset;
};

struct aio_result { // struct io_event
	u64 data, block;
	s64 result, result2;
};

struct aio_call {
	u64 list, context, start_ns, now_ns;
	u64 number; // number of operations
	u32 tid;
	struct aio_block block; // the current operation
	struct aio_result result;
};

// The call that returns on this CPU. Not on the stack, where room is scarce.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct aio_call);
} aio_calls SEC(".maps");

static __always_inline struct aio_call *this_aio_call(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&aio_calls, &zero);
}

__noinline s64 vector_bytes(u64 parts, u64 number);

// IOCB_CMD_PREADV and PWRITEV: the buffer is an array, and the length its number of entries.
static __always_inline int is_vector(u16 opcode)
{
	return opcode == 7 || opcode == 8;
}

static __always_inline int is_data(u16 opcode)
{
	return opcode <= 1 || is_vector(opcode);
}

static long aio_submitted(u32 index, void *unused)
{
	struct aio_call *call = this_aio_call();
	struct ring *ring = this_ring();
	struct aio_submit_event *event;
	u64 address, position, file;
	s64 file_position;

	if (!call || index >= call->number || !ring)
		return 1;
	struct aio_block *block = &call->block;
	if (bpf_probe_read_user(&address, sizeof(address), (void *)(call->list + 8ull * index)) ||
	    bpf_probe_read_user(block, sizeof(*block), (void *)address)) {
		ring_lose(ring, EVENT_AIO_SUBMIT, call->now_ns);
		return 0;
	}
	file = file_at(block->fd, call->now_ns, &file_position);
	event = ring_take(ring, sizeof(*event), EVENT_AIO_SUBMIT, call->now_ns, &position);
	if (!event)
		return 0;
	event->at_ns = call->now_ns;
	event->start_ns = call->start_ns;
	event->context = call->context;
	event->block = address;
	event->file = file;
	event->offset = is_data(block->opcode) ? block->offset : -1;
	event->bytes = !is_data(block->opcode) ? -1 : is_vector(block->opcode) ? vector_bytes(block->buffer, block->bytes) : block->bytes;
	event->tid = call->tid;
	event->fd = block->fd;
	event->opcode = block->opcode;
	event->pad = 0;
	ring_give(&event->header, position, sizeof(*event), EVENT_AIO_SUBMIT, 0);
	return 0;
}

static long aio_reaped(u32 index, void *unused)
{
	struct aio_call *call = this_aio_call();
	struct ring *ring = this_ring();
	struct aio_done_event *event;
	u64 position;

	if (!call || index >= call->number || !ring)
		return 1;
	struct aio_result *result = &call->result;
	if (bpf_probe_read_user(result, sizeof(*result), (void *)(call->list + sizeof(*result) * index))) {
		ring_lose(ring, EVENT_AIO_DONE, call->now_ns);
		return 0;
	}
	event = ring_take(ring, sizeof(*event), EVENT_AIO_DONE, call->now_ns, &position);
	if (!event)
		return 0;
	event->at_ns = call->now_ns;
	event->context = call->context;
	event->block = result->block;
	event->result = result->result;
	event->tid = call->tid;
	event->pad = 0;
	ring_give(&event->header, position, sizeof(*event), EVENT_AIO_DONE, 0);
	return 0;
}

// Before 5.17 the operations after the first few are counted as lost. A global function is verified
// only once, not for each path to it.
__noinline int aio_each(u32 kind)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop)) {
		if (kind == EVENT_AIO_SUBMIT)
			bpf_loop(AIO_AT_MOST, aio_submitted, 0, 0);
		else
			bpf_loop(AIO_AT_MOST, aio_reaped, 0, 0);
		return 0;
	}
	struct aio_call *call = this_aio_call();
	struct ring *ring = this_ring();
	for (u32 index = 0; index < AIO_EARLY; index++)
		if (kind == EVENT_AIO_SUBMIT)
			aio_submitted(index, 0);
		else
			aio_reaped(index, 0);
	if (ring && call && call->number > AIO_EARLY) {
		ring_lose(ring, kind, call->now_ns);
		__sync_fetch_and_add(&ring->dropped[kind & (RING_KINDS - 1)], call->number - AIO_EARLY - 1);
	}
	return 0;
}
