/* A program in which causes of a slow-down are injected: `victim PART KEY=NUMBER...`. What it does without an injection is the same in all runs. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int count;
static char **words;
static volatile double sink;
static char block[1 << 20];

static long option(const char *key, long otherwise) {
    size_t length = strlen(key);
    for (int n = 2; n < count; n++)
        if (!strncmp(words[n], key, length) && words[n][length] == '=') return atol(words[n] + length + 1);
    return otherwise;
}

#define SPIN(name, step) __attribute__((noinline)) static void name(long turns) { for (long n = 0; n < turns; n++) sink += n * step; }
SPIN(parse, 0.5)
SPIN(check, 0.25)
SPIN(pack, 0.125)
SPIN(hold, 0.75)
SPIN(outside, 0.0625)

/* Three functions, of which one takes most of the time. */
static void functions(void) {
    parse(option("parse", 2000000));
    check(option("check", 2000000));
    pack(option("pack", 2000000));
}

/* Writes of `size` bytes, `total` in all; `syncs` of them are followed by fsync. */
static void writes(void) {
    long size = option("size", 65536), total = option("total", 1 << 20), syncs = option("syncs", 1);
    long number = total / size, every = syncs ? number / syncs : number + 1;
    int file = open("file", O_CREAT | O_WRONLY | O_TRUNC, 0644);
    for (long n = 1; n <= number; n++) {
        if (write(file, block, size) != size) exit(3);
        if (n % every == 0) fsync(file);
    }
    close(file);
    check(option("check", 4000000));
}

/* Small files, each in a folder entry of its own. */
static void creates(void) {
    char name[32];
    for (long n = 0; n < option("files", 64); n++) {
        snprintf(name, sizeof name, "small-%ld", n);
        int file = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644);
        if (write(file, block, 4096) != 4096) exit(3);
        if (n % 16 == 0) fsync(file);
        close(file);
    }
}

static void reads(void) {
    long size = option("size", 65536);
    int file = open("input", O_RDONLY);
    while (read(file, block, size) > 0) continue;
    close(file);
    check(option("check", 4000000));
}

static void maps(void) {
    struct stat about;
    int file = open("input", O_RDONLY);
    fstat(file, &about);
    volatile char *place = mmap(NULL, about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    for (long at = 0; at < about.st_size; at += 4096) sink += place[at];
    check(option("check", 4000000));
}

/* The same call again and again. */
static void storm(void) {
    long number = option("number", 0), which = option("call", 0);
    int zero = open("/dev/zero", O_RDONLY);
    struct stat about;
    for (long n = 0; n < number; n++) switch (which) {
        case 0: getppid(); break;
        case 1: stat("/etc", &about); break;
        case 2: lseek(zero, 0, SEEK_SET); break;
        case 3: if (read(zero, block, 1) != 1) exit(3); break;
        case 4: umask(022); break;
        case 5: access("/etc", F_OK); break;
    }
    check(option("check", 8000000));
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *worker(void *unused) {
    for (long n = 0; n < option("rounds", 40); n++) {
        pthread_mutex_lock(&lock);
        hold(option("hold", 20000));
        if (option("sleep", 0)) usleep(option("sleep", 0));
        pthread_mutex_unlock(&lock);
        outside(option("outside", 100000));
    }
    return unused;
}

static void locks(void) {
    pthread_t threads[8];
    long number = option("threads", 2);
    for (long n = 0; n < number; n++) pthread_create(&threads[n], NULL, worker, NULL);
    for (long n = 0; n < number; n++) pthread_join(threads[n], NULL);
}

/* Blocks of 4 KiB over a file that is not in memory, `offset` bytes behind the borders of pages. */
static void overwrites(void) {
    long offset = option("offset", 0);
    int file = open("input", O_RDWR);
    fsync(file);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    for (long n = 0; n < 32; n++)
        if (pwrite(file, block, 4096, n * 65536 + offset) != 4096) exit(3);
    fsync(file);
}

int main(int number, char **arguments) {
    static const struct { const char *name; void (*run)(void); } parts[] = {
        {"functions", functions}, {"writes", writes}, {"creates", creates}, {"reads", reads}, {"maps", maps},
        {"storm", storm}, {"locks", locks}, {"overwrites", overwrites},
    };
    count = number;
    words = arguments;
    for (size_t n = 0; number > 1 && n < sizeof parts / sizeof *parts; n++)
        if (!strcmp(parts[n].name, arguments[1])) {
            parts[n].run();
            return 0;
        }
    return 2;
}
