/* 32 workers wait for jobs. Whoever puts one into the queue wakes one of them. */
#include <pthread.h>
#include <stdio.h>

enum { WORKERS = 32, JOBS = 6000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t come = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static int waiting, finished, over;
static long sum;

static void *work(void *unused) {
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!waiting && !over) pthread_cond_wait(&come, &lock);
        if (over) break;
        sum += waiting % 1000;
        waiting = 0;
        finished++;
        pthread_cond_signal(&done);
    }
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t workers[WORKERS];
    for (int n = 0; n < WORKERS; n++)
        if (pthread_create(&workers[n], NULL, work, NULL)) return 1;
    for (int job = 1; job <= JOBS; job++) {
        pthread_mutex_lock(&lock);
        waiting = job;
        pthread_cond_signal(&come);
        while (finished < job) pthread_cond_wait(&done, &lock);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    over = 1;
    pthread_cond_broadcast(&come);
    pthread_mutex_unlock(&lock);
    for (int n = 0; n < WORKERS; n++) pthread_join(workers[n], NULL);
    printf("sum %ld\n", sum);
    return 0;
}
