/*
 * Calls from places that the call itself names: each writes one byte at the offset LINE OF THE ROOT * 100000 + ITS OWN LINE. The root is
 * main, or the first function of a thread; which one, the file says. `printed` gets as many bytes at a time as the line in main has.
 *
 * call_sites FOLDER LIBRARY
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OFFSET(root) ((off_t)(root) * 100000 + __LINE__)
/* Keeps a call from being the last thing that a function does: the compiler would make a jump of it, and no frame. */
#define STAY __asm__ volatile("" ::: "memory")

static int in_main, in_worker, too_deep, interrupted_at;

__attribute__((noinline)) static void leaf(int fd, int root)
{
	if (pwrite(fd, "x", 1, OFFSET(root)) != 1)
		abort();
	STAY;
}

__attribute__((always_inline)) static inline void inlined(int fd, int root)
{
	if (pwrite(fd, "x", 1, OFFSET(root)) != 1)
		abort();
}

/* What calls this lies behind a buffer. */
__attribute__((noinline)) static void behind_a_buffer(int fd, int root)
{
	char buffer[20000];

	memset(buffer, 1, sizeof(buffer));
	__asm__ volatile("" ::"r"(buffer) : "memory");
	if (pwrite(fd, buffer, 1, OFFSET(root)) != 1)
		abort();
	STAY;
}

__attribute__((noinline)) static void descend(int fd, int root, int levels)
{
	char buffer[200];

	__asm__ volatile("" ::"r"(buffer) : "memory");
	if (levels > 0)
		descend(fd, root, levels - 1);
	else if (pwrite(fd, "x", 1, OFFSET(root)) != 1)
		abort();
	STAY;
}

static void on_signal(int signal)
{
	(void)signal;
	leaf(in_main, interrupted_at);
}

static void *worker(void *unused)
{
	for (int i = 0; i < 200; i++) {
		leaf(in_worker, __LINE__);
		leaf(in_worker, __LINE__);
		behind_a_buffer(in_worker, __LINE__);
		descend(in_worker, __LINE__, 12);
	}
	return unused;
}

static int file(const char *folder, const char *name)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return open(path, O_RDWR | O_CREAT, 0600);
}

int main(int argc, char **argv)
{
	pthread_t threads[4];
	char printed_path[4096];

	in_main = file(argv[1], "in_main");
	in_worker = file(argv[1], "in_worker");
	too_deep = file(argv[1], "too_deep");
	if (argc == 4) {
		/* Started by exec. */
		leaf(in_main, __LINE__);
		leaf(in_main, __LINE__);
		return 0;
	}
	snprintf(printed_path, sizeof(printed_path), "%s/printed", argv[1]);
	FILE *printed = fopen(printed_path, "w");
	setvbuf(printed, NULL, _IONBF, 0);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, worker, NULL);
	for (int i = 0; i < 300; i++) {
		leaf(in_main, __LINE__);
		leaf(in_main, __LINE__);
		inlined(in_main, __LINE__);
		inlined(in_main, __LINE__);
		behind_a_buffer(in_main, __LINE__);
		behind_a_buffer(in_main, __LINE__);
		descend(in_main, __LINE__, i % 9);
		descend(in_main, __LINE__, 1);
		fprintf(printed, "%*d", __LINE__, i);
		fprintf(printed, "%*d", __LINE__, i);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	descend(too_deep, __LINE__, 400);
	signal(SIGUSR1, on_signal);
	interrupted_at = __LINE__ + 1;
	raise(SIGUSR1);
	void (*in_library)(int, int) = (void (*)(int, int))dlsym(dlopen(argv[2], RTLD_NOW), "in_library");
	for (int i = 0; i < 50; i++) {
		in_library(in_main, __LINE__);
		in_library(in_main, __LINE__);
	}
	for (int i = 0; i < 3; i++) {
		if (fork() == 0) {
			leaf(in_main, __LINE__);
			behind_a_buffer(in_main, __LINE__);
			execl("/proc/self/exe", argv[0], argv[1], argv[2], "again", (char *)NULL);
			_exit(1);
		}
		wait(NULL);
	}
	return 0;
}
