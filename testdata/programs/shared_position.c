/* Threads that read one descriptor at the same time; each block of the file begins with its place, so each knows what it got. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BLOCK = 512, BLOCKS = 100000, THREADS = 4 };

static int fd;
static pthread_barrier_t start;
static long places[THREADS][BLOCKS + 1];
static int ids[THREADS], counts[THREADS];

static void *reader(void *argument)
{
	long number = (long)argument;
	char block[BLOCK];

	ids[number] = (int)syscall(SYS_gettid);
	pthread_barrier_wait(&start);
	while (read(fd, block, BLOCK) == BLOCK)
		memcpy(&places[number][counts[number]++], block, sizeof(long));
	return NULL;
}

int main(int count, char **words)
{
	pthread_t threads[THREADS];
	char block[BLOCK] = {0};

	if (count != 2 || (fd = open(words[1], O_RDWR | O_CREAT | O_TRUNC, 0644)) < 0)
		return 2;
	for (long n = 0; n < BLOCKS; n++) {
		long place = n * BLOCK;
		memcpy(block, &place, sizeof(place));
		if (pwrite(fd, block, BLOCK, place) != BLOCK)
			return 1;
	}
	pthread_barrier_init(&start, NULL, THREADS);
	for (long n = 0; n < THREADS; n++)
		pthread_create(&threads[n], NULL, reader, (void *)n);
	for (int n = 0; n < THREADS; n++)
		pthread_join(threads[n], NULL);
	for (int n = 0; n < THREADS; n++)
		for (int i = 0; i < counts[n]; i++)
			printf("%d %ld\n", ids[n], places[n][i]);
	return 0;
}
