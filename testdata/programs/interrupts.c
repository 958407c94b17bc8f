/* Timers and softirqs of known number, between two readings of what the kernel counted of interrupts.
 *
 * Usage: interrupts FOLDER. Leaves there what /proc/interrupts and /proc/softirqs said: `interrupts.begin`, `softirqs.end`, ...
 * Prints lines: `read NAME FROM_NS UNTIL_NS`: the moments of the calendar around such a reading; `sleep DEADLINE_NS` for each sleep
 * until a time of CLOCK_MONOTONIC; `timerfd NUMBER`, `alarms NUMBER` and `datagrams NUMBER`: how many there were. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000L
#define SLEEPS 200
#define EXPIRATIONS 100
#define ALARMS 50
#define DATAGRAMS 300

static char text[1 << 20];

static void must(int is_so, const char *what)
{
	if (!is_so) {
		perror(what);
		exit(1);
	}
}

static long now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000 * MS + time.tv_nsec;
}

static struct timespec time_of(long ns)
{
	return (struct timespec){ ns / (1000 * MS), ns % (1000 * MS) };
}

static void copy(const char *from, const char *folder, const char *name)
{
	char to[4096];
	int in = open(from, O_RDONLY), out;
	long got, length = 0;

	must(in >= 0, from);
	while ((got = read(in, text + length, sizeof(text) - length)) > 0)
		length += got;
	close(in);
	snprintf(to, sizeof(to), "%s/%s.%s", folder, from + sizeof("/proc/") - 1, name);
	out = open(to, O_CREAT | O_WRONLY | O_TRUNC, 0644);
	must(out >= 0 && write(out, text, length) == length, to);
	close(out);
}

static void look(const char *folder, const char *name)
{
	static const char *files[] = { "/proc/interrupts", "/proc/softirqs" };

	for (int file = 0; file < 2; file++) {
		long from_ns = now(CLOCK_REALTIME);
		copy(files[file], folder, name);
		printf("read %s.%s %ld %ld\n", files[file] + sizeof("/proc/") - 1, name, from_ns, now(CLOCK_REALTIME));
	}
}

static void sleeps(void)
{
	static long deadlines[SLEEPS];

	for (int number = 0; number < SLEEPS; number++) {
		deadlines[number] = now(CLOCK_MONOTONIC) + MS;
		struct timespec until = time_of(deadlines[number]);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	}
	for (int number = 0; number < SLEEPS; number++)
		printf("sleep %ld\n", deadlines[number]);
}

static void expirations(void)
{
	int timer = timerfd_create(CLOCK_MONOTONIC, 0);
	uint64_t times;

	must(timer >= 0, "timerfd_create");
	for (int number = 0; number < EXPIRATIONS; number++) {
		struct itimerspec once = { .it_value = { 0, 2 * MS } };
		timerfd_settime(timer, 0, &once, NULL);
		must(read(timer, &times, sizeof(times)) == sizeof(times) && times == 1, "timerfd");
	}
	printf("timerfd %d\n", EXPIRATIONS);
}

static void ignore(int number)
{
	(void)number;
}

static void alarms(void)
{
	sigset_t blocked, none;

	sigemptyset(&none);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGALRM);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	signal(SIGALRM, ignore);
	for (int number = 0; number < ALARMS; number++) {
		struct itimerval once = { .it_value = { 0, 2000 } };
		setitimer(ITIMER_REAL, &once, NULL);
		sigsuspend(&none);
	}
	printf("alarms %d\n", ALARMS);
}

static void datagrams(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(to);
	int socket_ = socket(AF_INET, SOCK_DGRAM, 0), sent = 0;
	char bytes[100] = "";

	must(socket_ >= 0 && !bind(socket_, (void *)&to, sizeof(to)) && !getsockname(socket_, (void *)&to, &length), "socket");
	for (; sent < DATAGRAMS; sent++) {
		if (sendto(socket_, bytes, sizeof(bytes), 0, (void *)&to, sizeof(to)) != sizeof(bytes))
			break; /* a machine without a network, not even its own */
		must(recv(socket_, bytes, sizeof(bytes), 0) == sizeof(bytes), "recv");
	}
	printf("datagrams %d\n", sent);
}

int main(int count, char **words)
{
	must(count == 2, "usage: interrupts FOLDER");
	look(words[1], "begin");
	sleeps();
	expirations();
	alarms();
	datagrams();
	look(words[1], "end");
	return 0;
}
