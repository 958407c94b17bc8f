/* Threads that read one open file, each record once. Usage: one_position FILE THREADS. Records have 16 bytes. */

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static int fd;

static void *read_all(void *unused) {
    char record[16];
    while (read(fd, record, sizeof record) == sizeof record) {}
    return unused;
}

int main(int count, char **arguments) {
    pthread_t threads[16];
    if (count < 3) return 2;
    int wanted = atoi(arguments[2]);
    fd = open(arguments[1], O_RDONLY);
    for (int i = 0; i < wanted; i++) pthread_create(&threads[i], NULL, read_all, NULL);
    for (int i = 0; i < wanted; i++) pthread_join(threads[i], NULL);
    return fd < 0;
}
