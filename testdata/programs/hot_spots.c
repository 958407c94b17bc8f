/* Takes CPU time in known ways, one after the other, and says how much it took.
 *
 * Prints lines `phase NAME FROM_NS UNTIL_NS CPU_NS USER_NS LINE`: between two moments of the calendar, the CPU time of the thread, how much of it
 * the kernel counted for the program, and the line that took it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000L
#define PAGES 4096

static volatile unsigned long sum;
static char buffer[1 << 18];

static long now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000 * MS + time.tv_nsec;
}

static long user_ns(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_utime.tv_sec * 1000 * MS + usage.ru_utime.tv_usec * 1000;
}

__attribute__((noinline)) static int add(void)
{
	for (long i = 0; i < 100000; i++)
		sum += i;
	return __LINE__ - 1;
}

/* The compiler makes it a part of the one that calls it. */
static inline __attribute__((always_inline)) void mix_one(long i)
{
	sum ^= sum >> 7 ^ i;
}

__attribute__((noinline)) static int mix(void)
{
	for (long i = 0; i < 100000; i++)
		mix_one(i);
	return __LINE__ - 6;
}

__attribute__((noinline)) static int touch(void)
{
	volatile char *memory = mmap(0, PAGES * 4096L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int line = 0;

	madvise((void *)memory, PAGES * 4096L, MADV_NOHUGEPAGE);
	for (long i = 0; i < PAGES; i++)
		memory[i * 4096] = 1, line = __LINE__;
	munmap((void *)memory, PAGES * 4096L);
	return line;
}

__attribute__((noinline)) static int copy(void)
{
	static int zero;

	if (!zero)
		zero = open("/dev/zero", O_RDONLY);
	if (read(zero, buffer, sizeof(buffer)) < 0)
		abort();
	return __LINE__ - 2;
}

static void phase(const char *name, int (*work)(void), long ns)
{
	long from = now(CLOCK_REALTIME), cpu = now(CLOCK_THREAD_CPUTIME_ID), user = user_ns();
	int line = 0;

	while (now(CLOCK_THREAD_CPUTIME_ID) - cpu < ns)
		line = work();
	cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
	printf("phase %s %ld %ld %ld %ld %d\n", name, from, now(CLOCK_REALTIME), cpu, user_ns() - user, line);
	fflush(stdout);
}

int main(void)
{
	phase("add", add, 600 * MS);
	phase("mix", mix, 300 * MS);
	phase("touch", touch, 300 * MS);
	phase("copy", copy, 300 * MS);
	return 0;
}
