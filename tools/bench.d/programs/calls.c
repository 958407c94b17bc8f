// The cheapest calls there are, so that what a recorder adds to one shows: `calls N` prints CPU ns of a getppid, a read of 512 bytes of
// /dev/zero and a write of as many to /dev/null.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double cpu_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(int count, char **words)
{
	long rounds = count > 1 ? atol(words[1]) : 300000;
	char bytes[512] = "";
	int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY);
	double marks[4];
	marks[0] = cpu_ns();
	for (long i = 0; i < rounds; i++)
		syscall(SYS_getppid);
	marks[1] = cpu_ns();
	for (long i = 0; i < rounds; i++)
		if (read(zero, bytes, sizeof bytes) < 0)
			return 1;
	marks[2] = cpu_ns();
	for (long i = 0; i < rounds; i++)
		if (write(null, bytes, sizeof bytes) < 0)
			return 1;
	marks[3] = cpu_ns();
	printf("%.1f %.1f %.1f\n", (marks[1] - marks[0]) / rounds, (marks[2] - marks[1]) / rounds, (marks[3] - marks[2]) / rounds);
}
