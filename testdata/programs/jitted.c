/* Makes a function while it runs, writes of it for profilers (/tmp/perf-PID.map, which is removed by whoever started this), and lets it
 * compute for half a second of CPU time. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* push %rbp; mov %rsp, %rbp; mov $20000000, %ecx; again: dec %ecx; jnz again; pop %rbp; ret */
static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0xb9, 0x00, 0x2d, 0x31, 0x01, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3 };

static long cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec * 1000000000L + time.tv_nsec;
}

__attribute__((noinline)) static void call_made(void (*made)(void))
{
	made();
	__asm__ volatile("");
}

int main(void)
{
	char name[64];
	void *memory = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return 1;
	memcpy(memory, code, sizeof(code));
	snprintf(name, sizeof(name), "/tmp/perf-%d.map", getpid());
	FILE *map = fopen(name, "w");
	if (!map)
		return 1;
	fprintf(map, "%lx %lx made_while_it_ran\n", (long)memory, (long)sizeof(code));
	fclose(map);
	while (cpu_ns() < 500000000)
		call_made((void (*)(void))memory);
	printf("%s\n", name);
	return 0;
}
