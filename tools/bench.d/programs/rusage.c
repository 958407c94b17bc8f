// Runs a command and writes what it took, by itself, to a file: user and system CPU seconds of it and its children, wall seconds.
// A recorder around this pays for its own work elsewhere.
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval time) { return time.tv_sec + time.tv_usec / 1e6; }

int main(int count, char **words)
{
	struct timespec start, end;
	struct rusage usage;
	int status;
	if (count < 3)
		return 2;
	clock_gettime(CLOCK_MONOTONIC, &start);
	pid_t child = fork();
	if (child == 0) {
		execvp(words[2], words + 2);
		_exit(127);
	}
	wait4(child, &status, 0, &usage);
	clock_gettime(CLOCK_MONOTONIC, &end);
	FILE *out = fopen(words[1], "w");
	if (!out)
		return 2;
	fprintf(out, "%.6f %.6f\n", seconds(usage.ru_utime) + seconds(usage.ru_stime),
		(end.tv_sec - start.tv_sec) + (end.tv_nsec - start.tv_nsec) / 1e9);
	fclose(out);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
