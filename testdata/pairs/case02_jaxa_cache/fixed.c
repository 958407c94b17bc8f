/* Measures how fast the file system writes: 26 times 2.4 MB and the sync, bytes over seconds. The rate goes to standard error. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WRITES = 26, SIZE = 2400000 };

int main(int count, char **words) {
    static char state[SIZE];
    struct timespec begin, end;
    memset(state, 'x', SIZE);
    int out = open(words[count - 1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (out < 0) return perror(words[count - 1]), 1;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int n = 0; n < WRITES; n++)
        if (write(out, state, SIZE) != SIZE) return perror("write"), 1;
    if (fsync(out)) return perror("fsync"), 1;
    clock_gettime(CLOCK_MONOTONIC, &end);
    double s = end.tv_sec - begin.tv_sec + (end.tv_nsec - begin.tv_nsec) / 1e9;
    fprintf(stderr, "%.0f MB/s\n", WRITES * (SIZE / 1e6) / s);
    printf("%d writes of %d bytes\n", WRITES, SIZE);
}
