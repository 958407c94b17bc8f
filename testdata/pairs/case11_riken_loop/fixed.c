/* The load of a file server: four threads that each read and write whole files of their own, in no order. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 4, FILES = 40, ROUNDS = 250, SIZE = 16384 };
static const char *folder;

static void *work(void *which) {
    long thread = (long)which, moved = 0;
    unsigned chance = thread;
    char path[4096], data[SIZE];
    for (int round = 0; round < ROUNDS; round++) {
        int writes = rand_r(&chance) % 3 == 0;
        snprintf(path, sizeof path, "%s/f%05ld.dat", folder, thread * FILES + rand_r(&chance) % FILES);
        int file = open(path, O_RDWR);
        if (file < 0) return perror(path), NULL;
        moved += writes ? write(file, data, SIZE) : read(file, data, SIZE);
        close(file);
    }
    return (void *)moved;
}

int main(int count, char **words) {
    pthread_t threads[THREADS];
    long sum = 0;
    folder = words[count - 1];
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *moved;
        pthread_join(threads[i], &moved);
        sum += (long)moved;
    }
    printf("%ld bytes moved\n", sum);
}
