/* Holds a lock of the kernel for a known time, while others wait for it: lock_holder pipe|file PATH WAITERS MILLISECONDS.
 *
 * A thread writes into a pipe or a file from memory that is not there; a page fault inside of the write waits until another thread of the
 * program (userfaultfd) provides it. Meanwhile the writer has the lock: the mutex of the pipe, or the i_rwsem of the file.
 *
 * Prints `holder TID FROM_NS UNTIL_NS`, and `waiter TID BEFORE_NS AFTER_NS` for each other writer: CLOCK_REALTIME. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define MOST_WAITERS 12

static char present[PAGE];
static int target;
static int is_file;

struct writer {
	pthread_t thread;
	const char *memory;
	long place, tid, before_ns, after_ns;
};

static long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void check(long result, const char *what)
{
	if (result >= 0)
		return;
	perror(what);
	exit(3);
}

static void *write_once(void *argument)
{
	struct writer *writer = argument;

	writer->tid = syscall(SYS_gettid);
	writer->before_ns = now();
	check(is_file ? pwrite(target, writer->memory, PAGE, writer->place * PAGE) : write(target, writer->memory, PAGE), "write");
	writer->after_ns = now();
	/* The first thread waits for this one by then; the holder is not the last. */
	if (writer->memory == present)
		usleep(20000);
	return 0;
}

static void start(struct writer *writer, const char *memory, long place)
{
	writer->memory = memory;
	writer->place = place;
	check(-pthread_create(&writer->thread, 0, write_once, writer), "pthread_create");
}

static int watch(void *memory)
{
	int faults = syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .range = { (uintptr_t)memory, PAGE }, .mode = UFFDIO_REGISTER_MODE_MISSING };

	check(faults, "userfaultfd");
	check(ioctl(faults, UFFDIO_API, &api), "UFFDIO_API");
	check(ioctl(faults, UFFDIO_REGISTER, &range), "UFFDIO_REGISTER");
	return faults;
}

static void provide(int faults, void *memory)
{
	struct uffdio_copy copy = { .dst = (uintptr_t)memory, .src = (uintptr_t)present, .len = PAGE };

	check(ioctl(faults, UFFDIO_COPY, &copy), "UFFDIO_COPY");
}

int main(int argc, char **argv)
{
	struct writer holder, waiters[MOST_WAITERS];
	struct uffd_msg fault;
	int pipes[2];
	long from_ns, until_ns;

	if (argc != 5 || atoi(argv[3]) > MOST_WAITERS)
		return 2;
	is_file = !strcmp(argv[1], "file");
	check(pipe(pipes), "pipe");
	target = is_file ? open(argv[2], O_RDWR | O_CREAT, 0600) : pipes[1];
	check(target, argv[2]);
	char *absent = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(absent == MAP_FAILED ? -1 : 0, "mmap");
	int faults = watch(absent);

	start(&holder, absent, 0);
	/* From here on it has the lock. */
	check(read(faults, &fault, sizeof(fault)), "userfaultfd");
	from_ns = now();
	for (int waiter = 0; waiter < atoi(argv[3]); waiter++)
		start(&waiters[waiter], present, waiter + 1);
	usleep(atoi(argv[4]) * 1000);
	until_ns = now();
	provide(faults, absent);
	for (int waiter = 0; waiter < atoi(argv[3]); waiter++) {
		pthread_join(waiters[waiter].thread, 0);
		printf("waiter %ld %ld %ld\n", waiters[waiter].tid, waiters[waiter].before_ns, waiters[waiter].after_ns);
	}
	pthread_join(holder.thread, 0);
	printf("holder %ld %ld %ld\n", holder.tid, from_ns, until_ns);
	return 0;
}
