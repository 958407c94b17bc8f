/* Eight ways in which threads and processes work together, one after the other; of each it is known on whom its end depends when. Work is sleep:
 * of many threads that do nothing, each takes as long as it should, however busy the machine is. Where it may, it runs before all other programs, so that
 * whoever is to be first is first.
 *
 * Prints `structure NAME FROM_NS UNTIL_NS`, and for each thread on the critical path `part NAME TID NS LATE_NS`: how much of it is its work, and how
 * much longer than asked for all its sleeps took. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000L
#define MOST 8

/* Shared by processes: the numbers of threads, and what their sleeps took longer than asked for, by their place in the structure. */
static struct place {
	long tid, late_ns;
} *places;
static const char *structure;
/* That of this thread; one that has none takes no notes. */
static __thread struct place *mine;

static long now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void check(long result, const char *what)
{
	if (result >= 0)
		return;
	perror(what);
	exit(1);
}

static void work(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * MS };
	long from_ns = now(CLOCK_MONOTONIC);

	check(nanosleep(&time, 0), "nanosleep");
	if (mine)
		mine->late_ns += now(CLOCK_MONOTONIC) - from_ns - ms * MS;
}

static void is(int place)
{
	mine = &places[place];
	*mine = (struct place){ .tid = syscall(SYS_gettid) };
}

static void expect(int place, long ms)
{
	printf("part %s %ld %ld %ld\n", structure, places[place].tid, ms * MS, places[place].late_ns);
}

static void give(int fd)
{
	check(write(fd, "x", 1) - 1, "write");
}

static void take(int fd)
{
	char byte;

	check(read(fd, &byte, 1) - 1, "read");
}

static pthread_t start(void *(*run)(void *), intptr_t argument)
{
	pthread_t thread;

	check(-pthread_create(&thread, 0, run, (void *)argument), "pthread_create");
	return thread;
}

/* The longest child. */
static void fork_join(void)
{
	const long ms[] = { 30, 120, 70 };

	for (int child = 0; child < 3; child++)
		if (!fork()) {
			is(child);
			work(ms[child]);
			_exit(0);
		}
	for (int child = 0; child < 3; child++)
		check(wait(0), "wait");
	expect(1, 120);
}

/* The first item through the first stage, all through the slowest one, the last through the last. */
static void pipeline(void)
{
	const long ms[] = { 20, 50, 10 };
	int pipes[4][2];

	for (int stage = 0; stage < 4; stage++)
		check(pipe(pipes[stage]), "pipe");
	for (int stage = 0; stage < 3; stage++)
		if (!fork()) {
			is(stage);
			for (int item = 0; item < 4; item++) {
				take(pipes[stage][0]);
				work(ms[stage]);
				give(pipes[stage + 1][1]);
			}
			_exit(0);
		}
	for (int item = 0; item < 4; item++)
		give(pipes[0][1]);
	for (int item = 0; item < 4; item++)
		take(pipes[3][0]);
	for (int stage = 0; stage < 3; stage++)
		check(wait(0), "wait");
	expect(0, 20);
	expect(1, 200);
	expect(2, 10);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;

static void *hold_lock(void *place)
{
	is((intptr_t)place);
	pthread_mutex_lock(&lock);
	work(40);
	pthread_mutex_unlock(&lock);
	return 0;
}

/* All, one after the other. */
static void lock_convoy(void)
{
	pthread_t threads[4];

	for (int place = 0; place < 4; place++)
		threads[place] = start(hold_lock, place);
	for (int place = 0; place < 4; place++)
		pthread_join(threads[place], 0);
	for (int place = 0; place < 4; place++)
		expect(place, 40);
}

static int items;

static void put(void)
{
	pthread_mutex_lock(&lock);
	items++;
	pthread_cond_signal(&more);
	pthread_mutex_unlock(&lock);
}

static void get(void)
{
	pthread_mutex_lock(&lock);
	while (!items)
		pthread_cond_wait(&more, &lock);
	items--;
	pthread_mutex_unlock(&lock);
}

static void *consume(void *place)
{
	is((intptr_t)place);
	for (int item = 0; item < 4; item++) {
		get();
		work(50);
	}
	return 0;
}

static void *produce(void *place)
{
	is((intptr_t)place);
	for (int item = 0; item < 4; item++) {
		work(20);
		put();
	}
	return 0;
}

/* The producer's first item, and the consumer, which is slower. */
static void producer_and_consumer(void)
{
	pthread_t consumer = start(consume, 0), producer = start(produce, 1);

	pthread_join(consumer, 0);
	pthread_join(producer, 0);
	expect(1, 20);
	expect(0, 200);
}

static pthread_barrier_t meeting;

static void *two_phases(void *place)
{
	const long ms[2][3] = { { 30, 100, 60 }, { 110, 20, 60 } };

	is((intptr_t)place);
	for (int phase = 0; phase < 2; phase++) {
		work(ms[phase][(intptr_t)place]);
		pthread_barrier_wait(&meeting);
	}
	return 0;
}

/* The slowest of each phase. */
static void barrier(void)
{
	pthread_t threads[3];

	pthread_barrier_init(&meeting, 0, 3);
	for (int place = 0; place < 3; place++)
		threads[place] = start(two_phases, place);
	for (int place = 0; place < 3; place++)
		pthread_join(threads[place], 0);
	expect(1, 100);
	expect(0, 110);
}

/* In turns. */
static void client_and_server(void)
{
	int ends[2];

	check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
	if (!fork()) {
		is(1);
		for (int request = 0; request < 4; request++) {
			take(ends[1]);
			work(40);
			give(ends[1]);
		}
		_exit(0);
	}
	is(0);
	for (int request = 0; request < 4; request++) {
		work(10);
		give(ends[0]);
		take(ends[0]);
	}
	check(wait(0), "wait");
	expect(0, 40);
	expect(1, 160);
}

static pid_t job(int place, long ms)
{
	pid_t child = fork();

	if (child)
		return child;
	is(place);
	work(ms);
	_exit(0);
}

/* As make -j2 builds a program of three files: the last file begins when the first is done, and the program when all are. */
static void parallel_make(void)
{
	job(0, 40);
	job(1, 70);
	check(wait(0), "wait");
	job(2, 90);
	check(wait(0), "wait");
	check(wait(0), "wait");
	job(3, 30);
	check(wait(0), "wait");
	expect(0, 40);
	expect(2, 90);
	expect(3, 30);
}

static const long tasks[] = { 40, 90, 20, 120, 30 };
static int next_task;

static void *do_tasks(void *place)
{
	is((intptr_t)place);
	for (;;) {
		int task = __atomic_fetch_add(&next_task, 1, __ATOMIC_RELAXED);

		if (task >= 5)
			return 0;
		work(tasks[task]);
	}
}

/* The first worker has the first, third and fourth task: the second starts once the first has taken one. */
static void thread_pool(void)
{
	pthread_t first = start(do_tasks, 0);

	while (!__atomic_load_n(&next_task, __ATOMIC_RELAXED))
		work(1);
	pthread_t second = start(do_tasks, 1);
	pthread_join(first, 0);
	pthread_join(second, 0);
	expect(0, 180);
}

int main(void)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} all[MOST] = {
		{ "fork_join", fork_join }, { "pipeline", pipeline },
		{ "lock_convoy", lock_convoy }, { "producer_and_consumer", producer_and_consumer },
		{ "barrier", barrier }, { "client_and_server", client_and_server },
		{ "parallel_make", parallel_make }, { "thread_pool", thread_pool },
	};

	sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 });
	places = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int number = 0; number < MOST; number++) {
		long from_ns = now(CLOCK_REALTIME);

		structure = all[number].name;
		all[number].run();
		printf("structure %s %ld %ld\n", structure, from_ns, now(CLOCK_REALTIME));
		fflush(stdout);
	}
	return 0;
}
