// The two ends of TCP connections, when they are made and when they end. The user side finds
// sockets that are still open (census.rs).

#include "bpf/kernel.h"
#include "bpf/ring.h"
#include "events.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define AF_INET 2
#define AF_INET6 10
#define IPPROTO_TCP 6
#define TCP_ESTABLISHED 1
#define TCP_CLOSE 7

// The inode as in /proc and `socket:[...]`. 0: the connection is not accepted yet, or the last
// descriptor is closed.
static __always_inline u64 inode_of_socket(const struct sock *sk)
{
	struct socket *socket = BPF_CORE_READ(sk, sk_socket);
	struct inode *inode;

	if (!socket)
		return 0;
	inode = (void *)socket - bpf_core_field_offset(struct socket_alloc, socket) + bpf_core_field_offset(struct socket_alloc, vfs_inode);
	return BPF_CORE_READ(inode, i_ino);
}

static __always_inline void set_addresses(struct socket_event *event, const struct sock *sk)
{
	event->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	event->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	event->remote_port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	__builtin_memset(event->local, 0, sizeof(event->local));
	__builtin_memset(event->remote, 0, sizeof(event->remote));
	if (event->family == AF_INET) {
		BPF_CORE_READ_INTO((u32 *)event->local, sk, __sk_common.skc_rcv_saddr);
		BPF_CORE_READ_INTO((u32 *)event->remote, sk, __sk_common.skc_daddr);
	} else if (event->family == AF_INET6 && bpf_core_field_exists(sk->__sk_common.skc_v6_daddr)) {
		BPF_CORE_READ_INTO((struct in6_addr *)event->local, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO((struct in6_addr *)event->remote, sk, __sk_common.skc_v6_daddr);
	}
}

static __always_inline void set_counts(struct socket_event *event, const struct sock *sk)
{
	struct tcp_sock *tcp = (void *)sk;

	event->received_bytes = BPF_CORE_READ(tcp, bytes_received);
	event->sent_bytes = BPF_CORE_READ(tcp, bytes_sent) - BPF_CORE_READ(tcp, bytes_retrans);
	event->retransmits = BPF_CORE_READ(tcp, total_retrans);
	event->round_trip_us = BPF_CORE_READ(tcp, srtt_us) >> 3;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(set_state, const struct sock *sk, int before, int after)
{
	struct ring *ring = this_ring();
	struct socket_event *event;
	u64 position, inode;

	if (!ring || (before != TCP_ESTABLISHED && after != TCP_ESTABLISHED && after != TCP_CLOSE))
		return 0;
	inode = inode_of_socket(sk);
	if (!inode || BPF_CORE_READ(sk, sk_protocol) != IPPROTO_TCP)
		return 0;
	u64 now_ns = bpf_ktime_get_ns();
	event = ring_take(ring, sizeof(*event), EVENT_SOCKET, now_ns, &position);
	if (!event)
		return 0; // counted as lost
	event->at_ns = now_ns;
	event->inode = inode;
	event->peer = 0;
	event->protocol = IPPROTO_TCP;
	event->known = SOCKET_ADDRESSES | SOCKET_COUNTS;
	event->length = 0;
	set_addresses(event, sk);
	set_counts(event, sk);
	ring_give(&event->header, position, sizeof(*event), EVENT_SOCKET, 0);
	return 0;
}
