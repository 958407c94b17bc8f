// Sends and receives many datagrams in one call, and says of each call its result and its bytes.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define MOST 200

static char out[MOST][300], in[MOST][300], control[MOST][64];
static struct mmsghdr sent[MOST], received[MOST];
static int from, to;

static void say(const char *call, struct mmsghdr *messages, int result)
{
	long bytes = 0;

	for (int i = 0; i < result; i++)
		bytes += messages[i].msg_len;
	printf("%s %d %ld\n", call, result, result < 0 ? -1 : bytes);
}

static void both_ways(int number)
{
	say("sendmmsg", sent, sendmmsg(from, sent, number, 0));
	say("recvmmsg", received, recvmmsg(to, received, MOST, MSG_DONTWAIT, NULL));
}

int main(void)
{
	static struct iovec parts_out[MOST][2], parts_in[MOST];
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);

	from = socket(AF_INET, SOCK_DGRAM, 0);
	to = socket(AF_INET, SOCK_DGRAM, 0);
	if (bind(to, (void *)&address, length) || getsockname(to, (void *)&address, &length) ||
	    connect(from, (void *)&address, length))
		return 1;
	// Each message comes with another one, whose field cmsg_len is none of a message.
	setsockopt(to, SOL_SOCKET, SO_TIMESTAMP, &(int){ 1 }, sizeof(int));
	for (int i = 0; i < MOST; i++) {
		// What looks like a field, within a string.
		snprintf(out[i], sizeof(out[i]), "\"msg_len=7000, %d", i);
		parts_out[i][0] = (struct iovec){ out[i], 20 };
		parts_out[i][1] = (struct iovec){ out[i], i };
		parts_in[i] = (struct iovec){ in[i], sizeof(in[i]) };
		sent[i].msg_hdr = (struct msghdr){ .msg_iov = parts_out[i], .msg_iovlen = 2 };
		received[i].msg_hdr = (struct msghdr){ .msg_iov = &parts_in[i], .msg_iovlen = 1,
			.msg_control = control[i], .msg_controllen = sizeof(control[i]) };
	}
	both_ways(1);
	both_ways(8);
	both_ways(9);
	both_ways(0);
	both_ways(MOST);
	// Only the first one gets in.
	sent[1].msg_hdr.msg_iov = (void *)8;
	both_ways(3);
	return 0;
}
