/* Serves requests of which all is known: probes CALLS.
 *
 * Request i computes, sleeps for 20 ms where i % 50 is 49, and reaches the USDT probe test:done with its number, its result and its
 * name. `serve` calls itself once where i is even. A second thread hands over every tenth request: taken by one thread, given by the other.
 * Prints `request I RESULT FROM_NS UNTIL_NS` for each: CLOCK_REALTIME. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MOST 10000

static long results[MOST], from_ns[MOST], until_ns[MOST];
static int handed[2];

static long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	return time.tv_sec * 1000000000L + time.tv_nsec;
}

/* As DTRACE_PROBE3(test, done, number, result, name) of <sys/sdt.h> makes it: a nop, and a note that names its place and arguments. */
static inline void done(int number, long result, const char *name)
{
	__asm__ volatile(
		"990: nop\n"
		".pushsection .note.stapsdt,\"\",\"note\"\n"
		".balign 4\n"
		".4byte 992f-991f, 994f-993f, 3\n"
		"991: .asciz \"stapsdt\"\n"
		"992: .balign 4\n"
		"993: .8byte 990b\n"
		".8byte _.stapsdt.base\n"
		".8byte 0\n"
		".asciz \"test\"\n"
		".asciz \"done\"\n"
		".asciz \"-4@%k0 -8@%1 8@%2\"\n"
		"994: .balign 4\n"
		".popsection\n"
		".ifndef _.stapsdt.base\n"
		".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
		".weak _.stapsdt.base\n"
		".hidden _.stapsdt.base\n"
		"_.stapsdt.base: .space 1\n"
		".size _.stapsdt.base, 1\n"
		".popsection\n"
		".endif\n"
		: : "r"(number), "r"(result), "r"(name));
}

__attribute__((noipa)) long serve(int number, const char *name, short depth)
{
	volatile long sum = depth;

	for (int i = 0; i < number; i++)
		sum += i;
	if (depth > 0)
		return sum + serve(number, name, depth - 1);
	if (number % 50 == 49)
		usleep(20000);
	return -sum;
}

__attribute__((noipa)) void take(long number)
{
	__asm__ volatile("" : : "r"(number) : "memory");
}

__attribute__((noipa)) void give(long number)
{
	__asm__ volatile("" : : "r"(number) : "memory");
}

static void *giver(void *unused)
{
	long number;

	while (read(handed[0], &number, sizeof(number)) == sizeof(number))
		give(number);
	return unused;
}

int main(int argc, char **argv)
{
	int calls = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t thread;
	char name[32];

	if (calls > MOST || pipe(handed) || pthread_create(&thread, 0, giver, 0))
		return 3;
	for (int number = 0; number < calls; number++) {
		snprintf(name, sizeof(name), "request \"%d\"", number);
		from_ns[number] = now();
		results[number] = serve(number, name, number % 2 == 0);
		until_ns[number] = now();
		done(number, results[number], name);
		long handed_over = number;
		if (number % 10 == 0) {
			take(handed_over);
			if (write(handed[1], &handed_over, sizeof(handed_over)) < 0)
				return 3;
		}
	}
	close(handed[1]);
	pthread_join(thread, 0);
	for (int number = 0; number < calls; number++)
		printf("request %d %ld %ld %ld\n", number, results[number], from_ns[number], until_ns[number]);
	return 0;
}
