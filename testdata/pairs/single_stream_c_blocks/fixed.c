/* Adds up a file on a server, 64 KiB at a time, by eight threads that each take the next block. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 8, BLOCK = 65536 };
static int file;
static long next;

static void *work(void *sum) {
    uint8_t block[BLOCK];
    for (ssize_t got; (got = pread(file, block, BLOCK, __sync_fetch_and_add(&next, 1) * BLOCK)) > 0;)
        for (ssize_t i = 0; i < got; i++) *(uint64_t *)sum += block[i];
    return NULL;
}

int main(int count, char **words) {
    pthread_t threads[THREADS];
    uint64_t sums[THREADS] = {0}, sum = 0;
    if ((file = open(words[count - 1], O_RDONLY)) < 0) return perror(words[count - 1]), 1;
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, &sums[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += sums[i];
    }
    printf("sum %lu\n", sum);
}
