// Events about the two ends of sockets.
#pragma once

#include "bpf/event.h"

enum sockets_kind {
	EVENT_SOCKET = 30, // the known properties of a socket at some time; the last one counts
};

// Flags of socket_event.known.
enum socket_flag {
	SOCKET_ADDRESSES = 1, // ports and addresses
	SOCKET_COUNTS = 2,    // bytes, retransmits, round trip
	SOCKET_PEER = 4,      // the inode of the other end
};

struct socket_event {
	struct event_header header;
	unsigned long long at_ns; // CLOCK_MONOTONIC
	unsigned long long inode;
	unsigned long long peer; // inode of the other end
	unsigned long long received_bytes;
	unsigned long long sent_bytes; // each byte counted once
	unsigned int retransmits;
	unsigned int round_trip_us; // smoothed
	unsigned short family; // AF_*
	unsigned short protocol; // IPPROTO_*; 0: a local socket
	unsigned short local_port;
	unsigned short remote_port;
	unsigned int known; // socket_flag: fields that are known
	unsigned int length; // length of the name; 0: unknown
	unsigned char local[16];
	unsigned char remote[16];
	char name[]; // name of a local socket; padded to 8
};
