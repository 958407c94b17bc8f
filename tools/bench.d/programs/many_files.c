// Fills a file system with fallocate'd files: log-normal sizes, some interleaved, some deleted.
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
static double uniform(void) { return (random() + 1.0) / (RAND_MAX + 2.0); }
static long size(void) { double n = sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform()); long s = exp(9.2 + 2.0 * n); return s < 1 ? 1 : s > 50000000 ? 50000000 : s; }
int main(int argc, char **argv) {
    long files = atol(argv[2]); char p[4096]; srandom(1); long done = 0;
    for (int d = 0; done < files; d++) {
        snprintf(p, sizeof p, "%s/dir%03d", argv[1], d / 100); mkdir(p, 0755);
        snprintf(p, sizeof p, "%s/dir%03d/sub%02d", argv[1], d / 100, d % 100); mkdir(p, 0755);
        int fds[100]; long sz[100];
        for (int i = 0; i < 100; i++, done++) { char f[4200]; snprintf(f, sizeof f, "%s/file-%ld.dat", p, done); fds[i] = open(f, O_CREAT|O_WRONLY, 0644); sz[i] = size();
            if (d % 10) { if (fallocate(fds[i], 0, 0, sz[i])) { perror("fallocate"); return 1; } } }
        if (d % 10 == 0) for (int part = 0; part < 64; part++) for (int i = 0; i < 100; i++) { long at = part * 8192L; if (at < sz[i] * 4) fallocate(fds[i], 0, at, 8192); }
        for (int i = 0; i < 100; i++) { close(fds[i]); if (uniform() < 0.15) { char f[4200]; snprintf(f, sizeof f, "%s/file-%ld.dat", p, done - 100 + i); unlink(f); } }
    }
    return 0;
}
