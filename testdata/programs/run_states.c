/* Threads and a child that run, sleep and wait for each other, and say when, and what the kernel counted of it.
 *
 * Prints lines: `thread NAME TID FROM_NS UNTIL_NS CPU_NS VOLUNTARY INVOLUNTARY`: the CPU time and the switches between two moments of
 * the calendar; and `sleeps NAME NUMBER NS`: how often it slept, and how long each time. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000L

struct state {
	long at_ns, cpu_ns, voluntary, involuntary;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int to_partner[2], to_main[2];

static long now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000 * MS + time.tv_nsec;
}

/* All at one moment: again, where the thread left its CPU meanwhile. */
static struct state look(void)
{
	struct state state;
	struct rusage before, after;

	do {
		getrusage(RUSAGE_THREAD, &before);
		state.at_ns = now(CLOCK_REALTIME);
		state.cpu_ns = now(CLOCK_THREAD_CPUTIME_ID);
		getrusage(RUSAGE_THREAD, &after);
	} while (before.ru_nvcsw != after.ru_nvcsw || before.ru_nivcsw != after.ru_nivcsw);
	state.voluntary = after.ru_nvcsw;
	state.involuntary = after.ru_nivcsw;
	return state;
}

static void say(const char *name, struct state begin)
{
	struct state end = look();

	printf("thread %s %ld %ld %ld %ld %ld %ld\n", name, syscall(SYS_gettid), begin.at_ns, end.at_ns, end.cpu_ns - begin.cpu_ns,
	       end.voluntary - begin.voluntary, end.involuntary - begin.involuntary);
	fflush(stdout);
}

static void sleeps(const char *name, int number, long ns)
{
	struct timespec time = { 0, ns };

	for (int i = 0; i < number; i++)
		nanosleep(&time, 0);
	printf("sleeps %s %d %ld\n", name, number, ns);
	fflush(stdout);
}

static void compute(long ns)
{
	long until = now(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (now(CLOCK_THREAD_CPUTIME_ID) < until)
		;
}

static void pass(int in, int out, int rounds)
{
	char byte = 0;

	for (int i = 0; i < rounds; i++)
		if (read(in, &byte, 1) != 1 || write(out, &byte, 1) != 1)
			exit(1);
}

/* Holds the lock while it sleeps; then it is the other end of two pipes. */
static void *partner(void *held)
{
	struct state begin = look();

	pthread_mutex_lock(&lock);
	pthread_barrier_wait(held);
	sleeps("partner", 2, 30 * MS);
	pthread_mutex_unlock(&lock);
	pass(to_partner[0], to_main[1], 200);
	say("partner", begin);
	return 0;
}

int main(void)
{
	struct state begin = look();
	pthread_barrier_t held;
	pthread_t thread;
	char byte = 0;

	if (pipe(to_partner) || pipe(to_main))
		return 1;
	sleeps("main", 5, 20 * MS);
	compute(60 * MS);

	pthread_barrier_init(&held, 0, 2);
	pthread_create(&thread, 0, partner, &held);
	pthread_barrier_wait(&held);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	if (write(to_partner[1], &byte, 1) != 1)
		return 1;
	pass(to_main[0], to_partner[1], 199);
	if (read(to_main[0], &byte, 1) != 1)
		return 1;
	pthread_join(thread, 0);

	pid_t child = fork();
	if (!child) {
		struct state born = look();
		sleeps("child", 3, 25 * MS);
		compute(40 * MS);
		say("child", born);
		_exit(0);
	}
	waitpid(child, 0, 0);
	say("main", begin);
	return 0;
}
