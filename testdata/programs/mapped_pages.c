/* Touches pages of mapped files in every way, and says what it did.
 *
 * mapped_pages FOLDER WAY...: for each way a line `WAY PAGES RESIDENT MINOR MAJOR`: pages touched, pages of the file that were in the page
 * cache before, and faults that the kernel counted for the threads that touched them (getrusage), while they did nothing else. Each way has
 * a file of its own, FOLDER/WAY.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, LARGE = 16384, SMALL = 256, THREADS = 4 };

static char folder[3000], path[4000];
static int order[LARGE];
static volatile char sink;

/* Shared with children, and touched before anything is counted. */
struct books {
	long minor, major;
};
static struct books *books;

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

/* A file of `pages`, on the disk and not in memory. */
static int cold_file(const char *way, int pages)
{
	static char page[PAGE];
	snprintf(path, sizeof path, "%s/%s", folder, way);
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (file < 0)
		fail(path);
	for (int i = 0; i < pages; i++) {
		memset(page, i, PAGE);
		if (write(file, page, PAGE) != PAGE)
			fail(path);
	}
	if (fsync(file) || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED))
		fail(path);
	return file;
}

static char *map(int file, int pages, int protection, int flags)
{
	char *at = mmap(NULL, (size_t)pages * PAGE, protection, flags, file, 0);
	if (at == MAP_FAILED)
		fail("mmap");
	return at;
}

static int resident(char *at, int pages)
{
	static unsigned char in_memory[LARGE];
	int count = 0;
	if (mincore(at, (size_t)pages * PAGE, in_memory))
		fail("mincore");
	for (int i = 0; i < pages; i++)
		count += in_memory[i] & 1;
	return count;
}

static void shuffle(int pages)
{
	uint32_t random = 12345;
	for (int i = 0; i < pages; i++)
		order[i] = i;
	for (int i = pages - 1; i > 0; i--) {
		random = random * 1664525 + 1013904223;
		int j = (random >> 8) % (i + 1), kept = order[i];
		order[i] = order[j];
		order[j] = kept;
	}
}

static struct rusage usage(void)
{
	struct rusage now;
	getrusage(RUSAGE_THREAD, &now);
	return now;
}

static void count(const struct rusage *before, const struct rusage *after)
{
	__atomic_add_fetch(&books->minor, after->ru_minflt - before->ru_minflt, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&books->major, after->ru_majflt - before->ru_majflt, __ATOMIC_SEQ_CST);
}

enum access { READ, WRITE };

/* Nothing but the mapped pages is touched for the first time between the two looks at the books. */
static void touch(char *at, int from, int pages, const int *by, enum access access)
{
	struct rusage after = usage(), before = usage();
	for (int i = from; i < from + pages; i++) {
		char *page = at + (size_t)(by ? by[i] : i) * PAGE;
		if (access == WRITE)
			*page = 1;
		else
			sink = *page;
	}
	after = usage();
	count(&before, &after);
}

static void say(const char *way, int pages, int held)
{
	printf("%s %d %d %ld %ld\n", way, pages, held, books->minor, books->major);
	fflush(stdout);
	memset(books, 0, sizeof *books);
}

static void of_one_thread(const char *way, int pages, int flags, int advice, const int *by, enum access first, int then_write)
{
	int file = cold_file(way, pages);
	char *at = map(file, pages, PROT_READ | PROT_WRITE, flags);
	int held = resident(at, pages);
	madvise(at, (size_t)pages * PAGE, advice);
	if (!strcmp(way, "deleted"))
		unlink(path);
	touch(at, 0, pages, by, first);
	if (then_write)
		touch(at, 0, pages, by, WRITE);
	say(way, pages, held);
	munmap(at, (size_t)pages * PAGE);
	close(file);
}

static char *shared_at;
static pthread_barrier_t all_there;

static void *touch_part(void *number)
{
	/* The stack of a thread is touched by it for the first time too. */
	volatile char stack[16 * PAGE];
	for (int i = 0; i < 16; i++)
		stack[i * PAGE] = 1;
	sink = stack[0];
	usage();
	pthread_barrier_wait(&all_there);
	touch(shared_at, (int)(intptr_t)number * (SMALL / THREADS), SMALL / THREADS, NULL, READ);
	return NULL;
}

static void of_threads(const char *way)
{
	pthread_t threads[THREADS];
	int file = cold_file(way, SMALL);
	shared_at = map(file, SMALL, PROT_READ, MAP_SHARED);
	int held = resident(shared_at, SMALL);
	madvise(shared_at, (size_t)SMALL * PAGE, MADV_RANDOM);
	pthread_barrier_init(&all_there, NULL, THREADS);
	for (intptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, touch_part, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	say(way, SMALL, held);
	close(file);
}

static void of_a_child(const char *way)
{
	int file = cold_file(way, SMALL);
	char *at = map(file, SMALL, PROT_READ, MAP_SHARED);
	int held = resident(at, SMALL);
	madvise(at, (size_t)SMALL * PAGE, MADV_RANDOM);
	if (fork() == 0) {
		/* What it has of its parent is copied when it is written. */
		static char dummy[PAGE];
		touch(dummy, 0, 1, NULL, WRITE);
		touch(at, 0, 1, NULL, READ);
		memset(books, 0, sizeof *books);
		touch(at, 1, SMALL - 1, NULL, READ);
		_exit(0);
	}
	wait(NULL);
	say(way, SMALL - 1, held);
	close(file);
}

/* The kernel touches the pages. */
static void of_a_call(const char *way)
{
	int file = cold_file(way, SMALL), other;
	char *at = map(file, SMALL, PROT_READ, MAP_SHARED), target[4100];
	int held = resident(at, SMALL);
	madvise(at, (size_t)SMALL * PAGE, MADV_RANDOM);
	snprintf(target, sizeof target, "%s.copy", path);
	other = open(target, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (pwrite(other, target, 1, 0) != 1)
		fail(target);
	struct rusage after = usage(), before = usage();
	for (int i = 0; i < SMALL; i++)
		if (pwrite(other, at + (size_t)i * PAGE, PAGE, 0) != PAGE)
			fail(target);
	after = usage();
	count(&before, &after);
	say(way, SMALL, held);
	close(other);
	close(file);
}

/* No file: not to be seen. */
static void of_memory(const char *way, int flags)
{
	char *at = map(-1, SMALL, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS);
	touch(at, 0, SMALL, NULL, WRITE);
	say(way, SMALL, 0);
}

/* Mapped before somebody records, touched when a line comes in. */
static void when_told(const char *way)
{
	int file = cold_file(way, SMALL);
	char *at = map(file, SMALL, PROT_READ, MAP_SHARED);
	madvise(at, (size_t)SMALL * PAGE, MADV_RANDOM);
	int held = resident(at, SMALL);
	close(file);
	printf("ready\n");
	fflush(stdout);
	getchar();
	touch(at, 0, SMALL, NULL, READ);
	say(way, SMALL, held);
}

static void go(const char *way)
{
	if (!strcmp(way, "random"))
		of_one_thread(way, LARGE, MAP_SHARED, MADV_RANDOM, order, READ, 0);
	else if (!strcmp(way, "sequence"))
		of_one_thread(way, LARGE, MAP_SHARED, MADV_NORMAL, NULL, READ, 0);
	else if (!strcmp(way, "shared_writes"))
		of_one_thread(way, SMALL, MAP_SHARED, MADV_RANDOM, NULL, WRITE, 0);
	else if (!strcmp(way, "reads_then_writes"))
		of_one_thread(way, SMALL, MAP_SHARED, MADV_RANDOM, NULL, READ, 1);
	else if (!strcmp(way, "private_writes"))
		of_one_thread(way, SMALL, MAP_PRIVATE, MADV_RANDOM, NULL, WRITE, 0);
	else if (!strcmp(way, "deleted"))
		of_one_thread(way, SMALL, MAP_SHARED, MADV_RANDOM, NULL, READ, 0);
	else if (!strcmp(way, "threads"))
		of_threads(way);
	else if (!strcmp(way, "child"))
		of_a_child(way);
	else if (!strcmp(way, "call"))
		of_a_call(way);
	else if (!strcmp(way, "heap"))
		of_memory(way, MAP_PRIVATE);
	else if (!strcmp(way, "shared_memory"))
		of_memory(way, MAP_SHARED);
	else if (!strcmp(way, "when_told"))
		when_told(way);
	else
		exit(2);
}

int main(int count_of_words, char **words)
{
	snprintf(folder, sizeof folder, "%s", words[1]);
	books = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(books, 0, sizeof *books);
	shuffle(LARGE);
	for (int i = 2; i < count_of_words; i++)
		go(words[i]);
	return 0;
}
