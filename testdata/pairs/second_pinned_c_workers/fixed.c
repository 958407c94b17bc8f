/* Two threads look for long Collatz chains, on any CPU. */
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 2, NUMBERS = 4000000 };

static int longest[THREADS];

static void *look(void *which) {
    int *best = which;
    for (long start = 1 + (best - longest); start < NUMBERS; start += THREADS) {
        int length = 0;
        for (unsigned long n = (unsigned long)start; n != 1; length++) n = n % 2 ? 3 * n + 1 : n / 2;
        if (length > *best) *best = length;
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int n = 0; n < THREADS; n++)
        if (pthread_create(&threads[n], NULL, look, &longest[n])) return 1;
    for (int n = 0; n < THREADS; n++) pthread_join(threads[n], NULL);
    printf("%d steps\n", longest[0] > longest[1] ? longest[0] : longest[1]);
    return 0;
}
