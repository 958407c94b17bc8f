/* Counts words by their length with four threads, each for itself. */
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, WORDS = 40000000, LONGEST = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long words[LONGEST];

static void *count(void *first) {
    long own[LONGEST] = {0};
    for (long n = (long)first; n < WORDS; n += THREADS) {
        int length = n * 2654435761 % LONGEST;
        own[length]++;
    }
    pthread_mutex_lock(&lock);
    for (int n = 0; n < LONGEST; n++) words[n] += own[n];
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t thread[THREADS];
    for (long n = 0; n < THREADS; n++)
        if (pthread_create(&thread[n], NULL, count, (void *)n)) return 1;
    for (int n = 0; n < THREADS; n++) pthread_join(thread[n], NULL);
    for (int n = 0; n < LONGEST; n += 16) printf("%ld words of length %d\n", words[n], n);
    return 0;
}
