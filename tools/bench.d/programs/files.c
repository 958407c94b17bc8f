// Ten threads that create, write, read, stat and unlink files: `files FOLDER ROUNDS`.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *folder;
static long rounds;

static void *work(void *number)
{
	char path[4096], bytes[4096];
	struct stat about;
	memset(bytes, 'x', sizeof bytes);
	for (long i = 0; i < rounds; i++) {
		snprintf(path, sizeof path, "%s/file-%ld-%ld", folder, (long)number, i % 100);
		int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
		for (int part = 0; part < 4; part++)
			if (write(fd, bytes, sizeof bytes) < 0)
				abort();
		lseek(fd, 0, SEEK_SET);
		for (int part = 0; part < 4; part++)
			if (read(fd, bytes, sizeof bytes) < 0)
				abort();
		close(fd);
		stat(path, &about);
		unlink(path);
	}
	return 0;
}

int main(int count, char **words)
{
	pthread_t threads[10];
	if (count < 3)
		return 2;
	folder = words[1];
	rounds = atol(words[2]);
	for (long i = 0; i < 10; i++)
		pthread_create(&threads[i], 0, work, (void *)i);
	for (int i = 0; i < 10; i++)
		pthread_join(threads[i], 0);
}
