// Page faults, so that what a recorder adds to one shows: `pages ROUNDS FILE` prints CPU ns of a fault on anonymous memory, of a fault on a
// mapped file that is in the page cache (made here, in writes of a page; each fault maps 16 pages), and of a first write to a page of it in a
// shared mapping.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 4096 };

static double cpu_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

static long faults(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

static int file_of_pages(const char *path)
{
	static char page[PAGE];
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (int i = 0; i < PAGES; i++)
		if (write(file, page, PAGE) != PAGE)
			exit(1);
	fsync(file);
	return file;
}

// Mapping and unmapping are part of the time.
static double of_one(long rounds, int file, int flags, int is_write)
{
	long before = faults();
	double start = cpu_ns();
	for (long round = 0; round < rounds; round++) {
		volatile char *at = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, flags, file, 0);
		for (int i = 0; i < PAGES; i++)
			if (is_write)
				at[(size_t)i * PAGE] = 1;
			else
				(void)at[(size_t)i * PAGE];
		munmap((void *)at, (size_t)PAGES * PAGE);
	}
	double end = cpu_ns();
	return (end - start) / (faults() - before);
}

int main(int count, char **words)
{
	long rounds = count > 1 ? atol(words[1]) : 20;
	int file = file_of_pages(count > 2 ? words[2] : "pages.data");
	double anonymous = of_one(rounds, -1, MAP_PRIVATE | MAP_ANONYMOUS, 1);
	double read = of_one(rounds * 16, file, MAP_SHARED, 0);
	double write = of_one(rounds, file, MAP_SHARED, 1);
	printf("%.1f %.1f %.1f\n", anonymous, read, write);
}
