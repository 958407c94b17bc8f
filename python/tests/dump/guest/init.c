// The first process of a guest whose kernel is to panic: it starts tasks of which everything is known, writes what /proc
// says of them to the second serial port, and makes the kernel panic in the way that the command line of the kernel asks for.
//
// Words of the command line: sleepers=N, spinners=N, panic_by=KIND (see tools/make-dump). `KIND PID N` lines come first, then `== PID FILE` and the content of
// that file of /proc for each task, then `== end`. With truth=0, nothing of tasks is written: the port is slow.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/kexec.h>
#include <linux/userfaultfd.h>
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <dirent.h>

static int truth = -1, is_quiet;

// In one write: formatted output of the C library would ask the port for its position.
static void say(const char *format, ...)
{
	char line[512];
	va_list words;
	va_start(words, format);
	int length = vsnprintf(line, sizeof(line), format, words);
	va_end(words);
	if (write(truth, line, length) != length)
		_exit(1);
}

static void sleep_ms(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };
	nanosleep(&time, NULL);
}

static void burn_ms(long ms)
{
	struct timespec now;
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < ms);
}

static void wait_for_ever(void)
{
	for (;;)
		pause();
}

// Starts a task with a name; `run` never returns.
static pid_t start(const char *name, void (*run)(long), long argument)
{
	pid_t pid = fork();
	if (!pid) {
		prctl(PR_SET_NAME, name);
		run(argument);
		wait_for_ever();
	}
	if (pid > 0 && !is_quiet)
		say("%s %d %ld\n", name, pid, argument);
	return pid;
}

static int empty_pipe[2];

static void sleeper(long number)
{
	static unsigned int word;
	char byte;
	switch (number % 4) {
	case 0: for (;;) sleep(100000);
	case 1: for (;;) pause();
	case 2: for (;;) if (read(empty_pipe[0], &byte, 1) < 0) _exit(1);
	default: for (;;) syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
	}
}

static void burner(long ms) { burn_ms(ms); }

static void spinner(long unused) { (void)unused; for (;;); }

static void resident(long bytes)
{
	char *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (long at = 0; at < bytes; at += 4096)
		room[at] = 1;
}

static void opener(long files)
{
	char path[64];
	for (long number = 0; number < files; number++) {
		snprintf(path, sizeof(path), "/tmp/opened-%03ld", number);
		if (open(path, O_RDWR | O_CREAT, 0600) < 0)
			_exit(1);
	}
}

static void writer(long bytes)
{
	static char block[65536];
	int file = open("/tmp/written", O_RDWR | O_CREAT, 0600);
	for (long done = 0; done < bytes; done += sizeof(block))
		if (write(file, block, sizeof(block)) != sizeof(block))
			_exit(1);
}

static void *thread(void *unused) { wait_for_ever(); return unused; }

static void threads(long count)
{
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	pthread_t one;
	for (long number = 1; number < count; number++)
		pthread_create(&one, &small, thread, NULL);
}

static void parent_of_zombie(long unused)
{
	(void)unused;
	if (!fork())
		_exit(3);
}

// In state D: until its child, which shares its memory, calls execve or ends.
static void vfork_parent(long unused)
{
	(void)unused;
	if (!vfork())
		for (;;)
			syscall(SYS_pause);
}

static ssize_t read_file(const char *path, char *content, size_t room)
{
	int file = open(path, O_RDONLY);
	ssize_t length = file < 0 ? -1 : read(file, content, room - 1);
	content[length > 0 ? length : 0] = 0;
	if (file >= 0)
		close(file);
	return length;
}

// Until a task has neither run nor been ready to for 300 ms: it waits for what holds it.
static void wait_until_blocked(pid_t pid)
{
	char path[64], content[512];
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	for (int still = 0; still < 6;) {
		sleep_ms(50);
		if (read_file(path, content, sizeof(content)) <= 0)
			return;
		const char *state = strrchr(content, ')');
		still = state && state[2] != 'R' ? still + 1 : 0;
	}
}

// --- A chain of locks. Its head writes to a file from a page that nobody ever fills, and holds the lock of the inode for ever.

#define CHAINED "/tmp/chained"
static int chain_pipe[2];

static void chain_head(long unused)
{
	(void)unused;
	int fault = syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = { .api = UFFD_API };
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register range = { { (unsigned long)page, 4096 }, UFFDIO_REGISTER_MODE_MISSING, 0 };
	int file = open(CHAINED, O_RDWR | O_CREAT, 0600);
	if (fault < 0 || ioctl(fault, UFFDIO_API, &api) || ioctl(fault, UFFDIO_REGISTER, &range) || write(file, page, 4096) < 0)
		_exit(1);
}

// Holds the lock of the pipe, and waits for that of the inode.
static void chain_splicer(long unused)
{
	(void)unused;
	int file = open(CHAINED, O_RDWR);
	if (write(chain_pipe[1], "x", 1) != 1 || splice(chain_pipe[0], NULL, file, NULL, 1, 0) < 0)
		_exit(1);
}

static void chain_pipe_writer(long unused)
{
	(void)unused;
	if (write(chain_pipe[1], "x", 1) != 1)
		_exit(1);
}

static void chain_file_writer(long unused)
{
	(void)unused;
	if (write(open(CHAINED, O_RDWR), "x", 1) != 1)
		_exit(1);
}

static void start_chain(void)
{
	if (pipe(chain_pipe))
		return;
	wait_until_blocked(start("chain-head", chain_head, 0));
	wait_until_blocked(start("chain-splicer", chain_splicer, 0));
	pid_t last = 0;
	for (int number = 0; number < 5; number++)
		last = start("chain-pipe", chain_pipe_writer, 0);
	for (int number = 0; number < 3; number++)
		last = start("chain-file", chain_file_writer, 0);
	wait_until_blocked(last);
}

// --- A disk that hangs: it serves a megabyte, and no more.

#define DISK "/dev/nvme0n1"
#define DISK_READERS 3
#define DISK_WRITER_BYTES 8192

static void disk_task(int is_writer, long block, long bytes)
{
	char *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int disk = open(DISK, O_RDWR | O_DIRECT);
	for (;;)
		if (disk < 0 || (is_writer ? pwrite(disk, room, bytes, block * bytes) : pread(disk, room, bytes, block * bytes)) < 0)
			_exit(1);
}

static void disk_reader(long block) { disk_task(0, block, 4096); }

static void disk_writer(long block) { disk_task(1, block, DISK_WRITER_BYTES); }

// Until the disk has done nothing for half a second although everybody waits for it.
static void start_disk_tasks(void)
{
	char before[256] = "", now[256], waits[64];
	unsigned reads, writes;
	if (access(DISK, R_OK))
		return;
	for (long number = 1; number <= DISK_READERS; number++)
		start("disk-reader", disk_reader, number * 100);
	start("disk-writer", disk_writer, 500);
	for (int still = 0; still < 5;) {
		sleep_ms(100);
		read_file("/sys/block/nvme0n1/inflight", waits, sizeof(waits));
		int all_wait = sscanf(waits, "%u %u", &reads, &writes) == 2 && reads == DISK_READERS && writes == 1;
		// How many requests were done, which bytes: the first seven numbers. The others are times, which go on.
		read_file("/sys/block/nvme0n1/stat", now, sizeof(now));
		still = all_wait && !strncmp(before, now, 26) ? still + 1 : 0;
		memcpy(before, now, sizeof(before));
	}
}

// --- Sockets, with bytes in them that nobody reads

static int bound(int family, int type, int port)
{
	int one = socket(family, type, 0);
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int failed = family == AF_INET ? bind(one, (void *)&v4, sizeof(v4)) : bind(one, (void *)&v6, sizeof(v6));
	if (failed || (type == SOCK_STREAM && listen(one, 5)))
		_exit(1);
	return one;
}

static int connected(int one, int port)
{
	struct sockaddr_in place = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (connect(one, (void *)&place, sizeof(place)))
		_exit(1);
	return one;
}

static void unix_listener(const char *name, int length)
{
	struct sockaddr_un place = { .sun_family = AF_UNIX };
	int one = socket(AF_UNIX, SOCK_STREAM, 0);
	memcpy(place.sun_path, name, length);
	if (bind(one, (void *)&place, offsetof(struct sockaddr_un, sun_path) + length) || listen(one, 7))
		_exit(1);
}

static void sockets(long unused)
{
	static char bytes[100];
	int pair[2], first = bound(AF_INET, SOCK_STREAM, 7001), receiver;
	(void)unused;
	int sender = connected(socket(AF_INET, SOCK_STREAM, 0), 7001);
	receiver = accept(first, NULL, NULL);
	// This one is never accepted.
	connected(socket(AF_INET, SOCK_STREAM, 0), 7001);
	bound(AF_INET, SOCK_DGRAM, 7002);
	int datagrams = connected(bound(AF_INET, SOCK_DGRAM, 7003), 7002);
	bound(AF_INET6, SOCK_STREAM, 7004);
	bound(AF_INET6, SOCK_DGRAM, 7005);
	unix_listener("/tmp/socket", sizeof("/tmp/socket"));
	unix_listener("\0sysdock", sizeof("\0sysdock") - 1);
	socket(AF_NETLINK, SOCK_RAW, 0);
	if (receiver < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || write(pair[0], bytes, 10) != 10)
		_exit(1);
	if (write(sender, bytes, 100) != 100 || write(datagrams, bytes, 50) != 50)
		_exit(1);
}

static void start_sockets(void)
{
	struct ifreq loop = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int any = socket(AF_INET, SOCK_DGRAM, 0);
	if (any < 0 || ioctl(any, SIOCSIFFLAGS, &loop))
		say("failed lo: %s\n", strerror(errno));
	close(any);
	start("sockets", sockets, 0);
}

// --- A task that waits in the code of a module: for somebody to mount what it looks for

static void seeker(long unused)
{
	(void)unused;
	// Who is in the group of the daemon that mounts does not wait for it.
	if (!setpgid(0, 0))
		access("/auto/wanted", R_OK);
	_exit(1);
}

static void start_autofs(void)
{
	char options[64];
	int ends[2];
	if (pipe(ends))
		_exit(1);
	snprintf(options, sizeof(options), "fd=%d,minproto=5,maxproto=5,indirect", ends[1]);
	mkdir("/auto", 0755);
	// Process 1 begins in no group.
	if ((setpgid(0, 0) && errno != EPERM) || mount("auto", "/auto", "autofs", 0, options)) {
		say("failed autofs: %s\n", strerror(errno));
		return;
	}
	start("seeker", seeker, 0);
}

// --- What is written down

static void copy_file(const char *path, const char *name, int pid)
{
	static char content[65536];
	int file = open(path, O_RDONLY);
	if (file < 0)
		return;
	// A read gives some lines at a time.
	ssize_t length = 0, more;
	while ((more = read(file, content + length, sizeof(content) - length)) > 0)
		length += more;
	close(file);
	say("== %d %s\n", pid, name);
	if (length && write(truth, content, length) != length)
		_exit(1);
	if (!length || content[length - 1] != '\n')
		say("\n");
}

// Which files a process has open.
static void copy_links(int pid)
{
	char path[64], target[400];
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	DIR *folder = opendir(path);
	if (!folder)
		return;
	say("== %d fds\n", pid);
	for (struct dirent *entry; (entry = readdir(folder));) {
		ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target));
		if (length > 0)
			say("%s %.*s\n", entry->d_name, (int)length, target);
	}
	closedir(folder);
}

// When the task went from its processor last: the one line of /proc/PID/sched that is needed.
static void copy_last_run(const char *path, int tid)
{
	char content[4096];
	const char *line = read_file(path, content, sizeof(content)) > 0 ? strstr(content, "se.exec_start") : NULL;
	if (line)
		say("== %d sched\n%.*s\n", tid, (int)strcspn(line, "\n"), line);
}

static long long clock_ns(int clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

// The wall clock twice: what is read in between lies between the two, however busy the machine is.
static void write_clocks(const char *name)
{
	long long before = clock_ns(CLOCK_REALTIME), boot = clock_ns(CLOCK_BOOTTIME), after = clock_ns(CLOCK_REALTIME);
	say("== 0 %s\nrealtime %lld\nboottime %lld\nrealtime_then %lld\n", name, before, boot, after);
}

static void copy_task(int pid, int tid)
{
	// First how long it had run: where that did not change, all that follows is as it was until the end.
	static const char *names[] = { "schedstat", "stat", "io", "wchan" };
	char path[128];
	for (size_t number = 0; number < sizeof(names) / sizeof(*names); number++) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, names[number]);
		copy_file(path, names[number], tid);
	}
	snprintf(path, sizeof(path), "/proc/%d/task/%d/sched", pid, tid);
	copy_last_run(path, tid);
	if (pid == tid) {
		// Exact, unlike the sums in stat.
		snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
		copy_file(path, "smaps_rollup", tid);
		copy_links(pid);
	}
}

// Returns how many tasks there were that had not been written down.
static int copy_new_tasks(void)
{
	static bool written[1 << 22];  // the kernel's highest limit of process ids
	char path[128];
	int count = 0;
	DIR *tasks = opendir("/proc");
	for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
		int pid = atoi(entry->d_name);
		if (pid <= 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task", pid);
		DIR *threads = opendir(path);
		for (struct dirent *one; threads && (one = readdir(threads));) {
			int tid = atoi(one->d_name);
			if (tid <= 0 || written[tid])
				continue;
			copy_task(pid, tid);
			written[tid] = true;
			count++;
		}
		if (threads)
			closedir(threads);
	}
	if (tasks)
		closedir(tasks);
	return count;
}

static void write_to(const char *path, const char *text)
{
	int file = open(path, O_WRONLY);
	if (file < 0 || write(file, text, strlen(text)) < 0)
		say("failed %s: %s\n", path, strerror(errno));
}

static void write_truth(void)
{
	static const char *names[] = { "modules", "mounts", "uptime", "loadavg", "version", "stat", "slabinfo" };
	static const char *of_net[] = { "tcp", "tcp6", "udp", "udp6", "unix" };
	char path[128];
	// The log has a record whose time lies between two readings of the clocks.
	write_clocks("clocks_before");
	write_to("/dev/kmsg", "marked by the guest");
	write_clocks("clocks_marked");
	copy_new_tasks();
	for (size_t number = 0; number < sizeof(names) / sizeof(*names); number++) {
		snprintf(path, sizeof(path), "/proc/%s", names[number]);
		copy_file(path, names[number], 0);
	}
	for (size_t number = 0; number < sizeof(of_net) / sizeof(*of_net); number++) {
		snprintf(path, sizeof(path), "/proc/net/%s", of_net[number]);
		copy_file(path, of_net[number], 0);
	}
	copy_file("/sys/kernel/debug/block/nvme0n1/hctx0/busy", "busy0", 0);
	copy_file("/sys/kernel/debug/block/nvme0n1/hctx1/busy", "busy1", 0);
	// The kernel may have started threads since, as writing all that takes a second or two.
	while (copy_new_tasks() > 0)
		;
	// Last: whatever is written down changes it.
	copy_file("/proc/meminfo", "meminfo", 0);
	write_clocks("clocks_after");
	say("== end\n");
	tcdrain(truth);
}

static long number_of(const char *words, const char *name, long otherwise)
{
	const char *place = strstr(words, name);
	return place ? atol(place + strlen(name)) : otherwise;
}

static void load_modules(void)
{
	DIR *folder = opendir("/modules");
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		char path[300];
		snprintf(path, sizeof(path), "/modules/%s", entry->d_name);
		int file = entry->d_name[0] == '.' ? -1 : open(path, O_RDONLY);
		if (file >= 0 && syscall(SYS_finit_module, file, "", 0))
			say("failed %s: %s\n", path, strerror(errno));
	}
}

static void fill_memory(void)
{
	for (;;)
		resident(64 << 20);
}

// Files until there is no more room for them in memory
static void fill_tmpfs(void)
{
	static char block[1 << 20];
	mkdir("/full", 0755);
	mount("full", "/full", "tmpfs", 0, "size=100%");
	int file = open("/full/file", O_RDWR | O_CREAT, 0600);
	for (;;)
		if (write(file, block, sizeof(block)) < 0)
			_exit(1);
}

// Where the kernel has its code, and lists its BUGs
static void say_symbols(void)
{
	char line[256], name[128];
	unsigned long address;
	FILE *symbols = fopen("/proc/kallsyms", "r");
	while (symbols && fgets(line, sizeof(line), symbols))
		if (sscanf(line, "%lx %*c %127s", &address, name) == 2
			&& (!strcmp(name, "_stext") || !strcmp(name, "_etext") || !strcmp(name, "__start___bug_table")))
			say("symbol %s %lx\n", name, address);
	if (symbols)
		fclose(symbols);
}

// On the second processor, most of the time in the kernel: tools/make-dump lets it go wrong there.
static void stay_in_kernel(void)
{
	size_t bytes = 16 << 20;
	char *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int zeros = open("/dev/zero", O_RDONLY);
	cpu_set_t second;
	CPU_ZERO(&second);
	CPU_SET(1, &second);
	sched_setaffinity(0, sizeof(second), &second);
	write_to("/proc/sys/kernel/panic_on_oops", "1");
	if (!access("/proc/sys/kernel/softlockup_panic", W_OK)) {
		write_to("/proc/sys/kernel/softlockup_panic", "1");
		// It is reported after twice that time.
		write_to("/proc/sys/kernel/watchdog_thresh", "3");
	}
	say_symbols();
	say("== ready\n");
	tcdrain(truth);
	for (;;)
		if (read(zeros, room, bytes) < 0)
			_exit(1);
}

// --- A flight recorder

static void start_flight(void)
{
	char *const words[] = { "sysdock-native", "flight", "start", "--foreground", "--keep", "30s", "--memory", "48", "--ring", "16",
		"--what", "io,sched,block,system", NULL };
	char *const environment[] = { "PATH=/", "HOME=/", NULL };
	char said[4096];
	int ends[2];
	mkdir("/run", 0755);
	if (pipe(ends))
		_exit(1);
	if (!fork()) {
		dup2(ends[1], 1);
		dup2(truth, 2);
		execve("/sysdock-native", words, environment);
		_exit(1);
	}
	close(ends[1]);
	// It says something once it records.
	if (read(ends[0], said, sizeof(said)) <= 0)
		say("failed flight\n");
}

// The kernel that saves the memory of this one when it panics
static void load_crash_kernel(void)
{
	static const char line[] = "console=ttyS0 nr_cpus=1 reset_devices save=1";
	int kernel = open("/crash/kernel", O_RDONLY), first = open("/crash/initrd", O_RDONLY);
	if (kernel < 0 || first < 0 || syscall(SYS_kexec_file_load, kernel, first, sizeof(line), line, KEXEC_FILE_ON_CRASH))
		say("failed kexec: %s\n", strerror(errno));
}

// What it does: the memory goes onto the disk, its length before it.
static void save_memory(void)
{
	static char piece[1 << 20];
	struct stat about;
	ssize_t length = -1;
	int from = open("/proc/vmcore", O_RDONLY), to = open(DISK, O_WRONLY);
	if (from >= 0 && to >= 0 && !fstat(from, &about)) {
		snprintf(piece, sizeof(piece), "%lld", (long long)about.st_size);
		length = write(to, piece, 4096);
		while (length > 0 && (length = read(from, piece, sizeof(piece))) > 0)
			length = write(to, piece, length) == length ? length : -1;
		fsync(to);
	}
	fprintf(stderr, "saved: %s\n", length ? strerror(errno) : "all");
	reboot(RB_POWER_OFF);
}

// What sysdock reads of the kernel that runs: its tasks, as one line of JSON.
static void copy_kcore(void)
{
	static const char question[] = "{\"op\": \"info\"}\n{\"op\": \"tables\", \"parts\": [\"tasks\", \"stacks\", \"locks\"]}\n";
	static char answer[1 << 20];
	char *const words[] = { "sysdock-native", "dump", "serve", "/proc/kcore", NULL };
	char *const environment[] = { "PATH=/", NULL };
	int in[2], out[2];
	ssize_t length = 0, more;
	if (pipe(in) || pipe(out) || write(in[1], question, sizeof(question) - 1) < 0)
		_exit(1);
	if (!fork()) {
		dup2(in[0], 0), dup2(out[1], 1), dup2(truth, 2);
		close(in[1]);
		execve("/sysdock-native", words, environment);
		_exit(1);
	}
	close(in[1]), close(out[1]);
	while ((more = read(out[0], answer + length, sizeof(answer) - length)) > 0)
		length += more;
	say("== 0 kcore\n");
	if (write(truth, answer, length) != length)
		_exit(1);
}

int main(void)
{
	static char words[4096];
	mkdir("/proc", 0755), mkdir("/dev", 0755), mkdir("/tmp", 0755), mkdir("/sys", 0755);
	mount("proc", "/proc", "proc", 0, "");
	mount("dev", "/dev", "devtmpfs", 0, "");
	mount("tmp", "/tmp", "tmpfs", 0, "");
	mount("sys", "/sys", "sysfs", 0, "");
	mount("debug", "/sys/kernel/debug", "debugfs", 0, "");
	truth = open("/dev/ttyS1", O_WRONLY | O_NOCTTY);
	sethostname("crashing", 8);
	int given = open("/proc/cmdline", O_RDONLY);
	if (truth < 0 || read(given, words, sizeof(words) - 1) < 0 || pipe(empty_pipe))
		return 1;
	if (strstr(words, "save=1"))
		save_memory();
	load_modules();
	if (strstr(words, "kdump=1"))
		load_crash_kernel();
	struct rlimit most = { 65536, 65536 }, all = { RLIM_INFINITY, RLIM_INFINITY };
	setrlimit(RLIMIT_NOFILE, &most);
	setrlimit(RLIMIT_NPROC, &all);
	write_to("/proc/sys/kernel/pid_max", "4194304");
	write_to("/proc/sys/kernel/threads-max", "4194304");

	if (strstr(words, "flight=1"))
		start_flight();

	long sleepers = number_of(words, "sleepers=", 100);
	int says_truth = !strstr(words, "truth=0");
	is_quiet = !says_truth;
	for (long number = 0; number < sleepers; number++)
		if (start("sleeper", sleeper, number) < 0)
			break;
	is_quiet = 0;
	for (long number = 1; number <= 20; number++)
		start("burner", burner, number * 10);
	start("resident", resident, 64 << 20);
	start("opener", opener, 300);
	start("writer", writer, 8 << 20);
	start("threads", threads, 50);
	start("zombie", parent_of_zombie, 0);
	for (int number = 0; number < 3; number++)
		start("vfork", vfork_parent, 0);
	start_chain();
	start_sockets();
	start_autofs();
	if (!strstr(words, "kdump=1"))
		start_disk_tasks();
	sleep_ms(1500);
	for (long number = 0, count = number_of(words, "spinners=", 0); number < count; number++)
		start("spinner", spinner, 0);
	if (strstr(words, "flight=1"))
		copy_kcore();
	if (says_truth)
		write_truth();
	if (strstr(words, "panic_by=hung") || strstr(words, "panic_by=none"))
		wait_for_ever();
	if (strstr(words, "panic_by=oom")) {
		write_to("/proc/sys/vm/panic_on_oom", "1");
		fill_memory();
	}
	if (strstr(words, "panic_by=tmpfs")) {
		write_to("/proc/sys/vm/panic_on_oom", "1");
		fill_tmpfs();
	}
	if (!strstr(words, "panic_by=sysrq"))
		stay_in_kernel();
	write_to("/proc/sysrq-trigger", "c");
	wait_for_ever();
}
