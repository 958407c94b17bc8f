/* Produces numbers in one thread and adds them in another, a thousand at a time. */
#include <pthread.h>
#include <stdio.h>

enum { ITEMS = 40000, ROOM = 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static int queue[ROOM], held;

static void *produce(void *unused) {
    for (int n = 0; n < ITEMS;) {
        pthread_mutex_lock(&lock);
        while (held > 0) pthread_cond_wait(&emptied, &lock);
        while (held < ROOM && n < ITEMS) queue[held++] = n++ % 1000;
        pthread_cond_signal(&filled);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(void) {
    pthread_t producer;
    long sum = 0;
    if (pthread_create(&producer, NULL, produce, NULL)) return 1;
    for (int n = 0; n < ITEMS;) {
        pthread_mutex_lock(&lock);
        while (held == 0) pthread_cond_wait(&filled, &lock);
        for (int k = 0; k < held; k++) sum += queue[k];
        n += held;
        held = 0;
        pthread_cond_signal(&emptied);
        pthread_mutex_unlock(&lock);
    }
    pthread_join(producer, NULL);
    printf("sum %ld\n", sum);
    return 0;
}
