// Threads or processes that get in each other's way in the kernel: lock_storms STORM FOLDER ROUNDS. For each STORM it is known which lock
// is fought for.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS 8

static const char *folder;
static long rounds;
static int pipes[2];

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void check(int result, const char *what)
{
	if (result < 0)
		fail(what);
}

// The inode's i_rwsem.
static void same_inode(long worker)
{
	static char data[65536];
	char name[4096];
	int fd;

	snprintf(name, sizeof(name), "%s/same", folder);
	fd = open(name, O_RDWR | O_CREAT, 0600);
	check(fd, name);
	for (long round = 0; round < rounds; round++)
		if (pwrite(fd, data, sizeof(data), (worker * 16 + round % 16) * (long)sizeof(data)) < 0)
			fail("pwrite");
	close(fd);
	(void)worker;
}

// The mmap_lock of the process.
static void mappings(long worker)
{
	for (long round = 0; round < rounds; round++) {
		char *memory = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED)
			fail("mmap");
		for (int page = 0; page < 16; page++)
			memory[4096 * page] = 1;
		munmap(memory, 65536);
	}
	(void)worker;
}

// tasklist_lock, among others.
static void forks(long worker)
{
	for (long round = 0; round < rounds; round++) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		check(child, "fork");
		waitpid(child, 0, 0);
	}
	(void)worker;
}

// The s_vfs_rename_mutex of the file system.
static void renames(long worker)
{
	char here[4096], there[4096];

	for (int number = 0; number < 2; number++) {
		snprintf(here, sizeof(here), "%s/%ld-%d", folder, worker, number);
		if (mkdir(here, 0700) && errno != EEXIST)
			fail(here);
	}
	snprintf(here, sizeof(here), "%s/%ld-0/file", folder, worker);
	snprintf(there, sizeof(there), "%s/%ld-1/file", folder, worker);
	check(creat(here, 0600), here);
	for (long round = 0; round < rounds; round++)
		check(rename(round % 2 ? there : here, round % 2 ? here : there), here);
}

// cgroup_mutex; FOLDER lies in a cgroup file system.
static void groups(long worker)
{
	char name[4096];

	for (long round = 0; round < rounds; round++) {
		snprintf(name, sizeof(name), "%s/storm-%ld-%ld", folder, worker, round);
		check(mkdir(name, 0700), name);
		check(rmdir(name), name);
	}
}

// The mutex of a pipe.
static void one_pipe(long worker)
{
	char data[4096];

	for (long round = 0; round < rounds; round++)
		if (worker % 2 ? read(pipes[0], data, sizeof(data)) <= 0 : write(pipes[1], data, sizeof(data)) <= 0)
			fail("pipe");
}

static const struct storm {
	const char *name;
	void (*work)(long worker);
	int threads; // in one process
} storms[] = {
	{ "same_inode", same_inode, 0 }, { "mappings", mappings, 1 }, { "forks", forks, 0 },
	{ "renames", renames, 0 },       { "groups", groups, 0 },     { "one_pipe", one_pipe, 1 },
};

static const struct storm *chosen;

static void *run(void *worker)
{
	chosen->work((intptr_t)worker);
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t threads[WORKERS];

	for (unsigned index = 0; argc == 4 && index < sizeof(storms) / sizeof(*storms); index++)
		if (!strcmp(storms[index].name, argv[1]))
			chosen = &storms[index];
	if (!chosen) {
		fprintf(stderr, "usage: lock_storms same_inode|mappings|forks|renames|groups|one_pipe FOLDER ROUNDS\n");
		return 2;
	}
	folder = argv[2];
	rounds = atol(argv[3]);
	check(pipe(pipes), "pipe");
	for (intptr_t worker = 0; worker < WORKERS; worker++) {
		if (chosen->threads) {
			if (pthread_create(&threads[worker], 0, run, (void *)worker))
				fail("pthread_create");
			continue;
		}
		pid_t child = fork();

		check(child, "fork");
		if (!child) {
			run((void *)worker);
			_exit(0);
		}
	}
	for (int worker = 0; chosen->threads && worker < WORKERS; worker++)
		pthread_join(threads[worker], 0);
	for (int worker = 0; !chosen->threads && worker < WORKERS; worker++) {
		int status;

		if (wait(&status) < 0 || status)
			return 1;
	}
	return 0;
}
