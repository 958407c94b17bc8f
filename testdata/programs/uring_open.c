// Opens, reads and closes files by io_uring, without liburing: FILE... Prints how many bytes were read.

#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct io_uring_params setup;
static char *submissions, *completions;
static struct io_uring_sqe *entries;
static int ring;

static unsigned *at(char *area, unsigned offset)
{
	return (unsigned *)(area + offset);
}

// One operation, to its end; its result.
static int run(struct io_uring_sqe operation)
{
	unsigned tail = *at(submissions, setup.sq_off.tail), index = tail & *at(submissions, setup.sq_off.ring_mask);

	entries[index] = operation;
	at(submissions, setup.sq_off.array)[index] = index;
	__atomic_store_n(at(submissions, setup.sq_off.tail), tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		return -1;
	unsigned head = *at(completions, setup.cq_off.head);
	struct io_uring_cqe *done = (struct io_uring_cqe *)(completions + setup.cq_off.cqes);
	int result = done[head & *at(completions, setup.cq_off.ring_mask)].res;
	__atomic_store_n(at(completions, setup.cq_off.head), head + 1, __ATOMIC_RELEASE);
	return result;
}

int main(int count, char **names)
{
	static char bytes[4096];
	long read = 0;

	ring = syscall(SYS_io_uring_setup, 8, &setup);
	if (ring < 0)
		return 77;
	submissions = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	completions = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING);
	entries = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
	for (int i = 1; i < count; i++) {
		int file = run((struct io_uring_sqe){ .opcode = IORING_OP_OPENAT, .fd = AT_FDCWD, .addr = (unsigned long)names[i], .open_flags = O_RDONLY });
		if (file < 0)
			continue;
		int got = run((struct io_uring_sqe){ .opcode = IORING_OP_READ, .fd = file, .addr = (unsigned long)bytes, .len = sizeof(bytes) });
		read += got > 0 ? got : 0;
		run((struct io_uring_sqe){ .opcode = IORING_OP_CLOSE, .fd = file });
	}
	printf("%ld\n", read);
	return 0;
}
