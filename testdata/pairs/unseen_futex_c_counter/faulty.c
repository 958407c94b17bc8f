/* Counts long words with four threads. The counter is shared, so there is a lock. */
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, WORDS = 8000000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long words;

static void *count(void *first) {
    for (long n = (long)first; n < WORDS; n += THREADS) {
        long length = n * 2654435761 % 17;
        pthread_mutex_lock(&lock);
        words += length > 8;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    pthread_t thread[THREADS];
    for (long n = 0; n < THREADS; n++)
        if (pthread_create(&thread[n], NULL, count, (void *)n)) return 1;
    for (int n = 0; n < THREADS; n++) pthread_join(thread[n], NULL);
    printf("%ld long words\n", words);
    return 0;
}
