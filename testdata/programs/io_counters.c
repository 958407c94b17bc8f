/* Reads and writes in every form that the kernel counts in /proc/PID/io, and in some that it does not. Usage: io_counters FOLDER
 *
 * Prints what the kernel counted between two getpriority(99, 0): rchar, wchar, syscr, syscw. Each of these calls is followed by a
 * read of /proc/self/io; the first of them is counted (a read of this file does not count itself), the second is not.
 */

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNTERS = 4 };
static const char *const names[COUNTERS] = {"rchar: ", "wchar: ", "syscr: ", "syscw: "};
static char bytes[1 << 16];

static void counters(int fd, long long *values) {
    char text[1024];
    syscall(SYS_getpriority, 99, 0);
    ssize_t length = read(fd, text, sizeof text - 1);
    if (length < 0) exit(4);
    text[length] = 0;
    for (int i = 0; i < COUNTERS; i++) values[i] = atoll(strstr(text, names[i]) + strlen(names[i]));
}

static void check(long long result, long long wanted) {
    if (result != wanted) exit(3);
}

/* In a folder of its own, from every thread. */
static void *work(void *number) {
    struct iovec parts[3] = {{bytes, 10}, {bytes + 10, 20}, {bytes + 30, 30}};
    char name[32], *odd = (char *)1;
    off_t at = 100;
    int pipes[2], sockets[2];

    snprintf(name, sizeof name, "data %ld", (long)number);
    int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    snprintf(name, sizeof name, "copy %ld", (long)number);
    int copy = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    check(pipe(pipes) | socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    for (int i = 0; i < 100; i++) {
        check(write(file, bytes, 1000), 1000);
        check(pwrite(file, bytes, 50, 7), 50);
        check(writev(file, parts, 3), 60);
        check(pwritev(file, parts, 2, 5), 30);
        check(pwritev2(file, parts, 3, -1, 0), 60);
    }
    check(lseek(file, 0, SEEK_SET), 0);
    for (int i = 0; i < 100; i++) {
        check(read(file, bytes, 900), 900);
        check(pread(file, bytes, 40, 3), 40);
        check(readv(file, parts, 3), 60);
        check(preadv(file, parts, 1, 9), 10);
        check(preadv2(file, parts, 2, -1, 0), 30);
    }
    check(pread(file, bytes, 100, 1 << 30), 0);
    check(read(file, odd, 100), -1);  /* counted, though nothing is moved */
    check(read(999, bytes, 100), -1); /* not counted */
    check(readv(999, parts, 2), -1);  /* counted, though nothing is open */
    check(lseek(file, 0, SEEK_SET), 0);
    check(sendfile(copy, file, NULL, 3000), 3000);
    check(sendfile(copy, file, &at, 200), 200);
    check(copy_file_range(file, NULL, copy, NULL, 500, 0), 500);
    check(write(pipes[1], bytes, 70), 70);
    check(read(pipes[0], bytes, 100), 70);
    check(write(sockets[0], bytes, 80), 80);
    check(read(sockets[1], bytes, 100), 80);
    /* Not counted: */
    check(send(sockets[0], bytes, 90, 0), 90);
    check(recv(sockets[1], bytes, 100, 0), 90);
    check(splice(file, NULL, pipes[1], NULL, 400, 0), 400);
    check(splice(pipes[0], NULL, copy, NULL, 400, 0), 400);
    return NULL;
}

int main(int count, char **arguments) {
    long long before[COUNTERS], after[COUNTERS];
    pthread_t threads[4];
    if (count != 2 || chdir(arguments[1])) return 2;
    int first = open("/proc/self/io", O_RDONLY), second = open("/proc/self/io", O_RDONLY);
    counters(first, before);
    work((void *)9L);
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    counters(second, after);
    for (int i = 0; i < COUNTERS; i++) printf("%lld\n", after[i] - before[i]);
    return 0;
}
