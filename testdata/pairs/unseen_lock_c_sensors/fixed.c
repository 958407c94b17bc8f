/* Reads four sensors, a thread each. Only the total is shared, so only the addition is locked. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

enum { SENSORS = 4, READINGS = 3 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long total;

/* The converter of a sensor needs 80 ms until its value is stable; each sensor has a converter of its own. */
static long measure(long sensor, int n) {
    struct timespec settle = {0, 80000000};
    nanosleep(&settle, NULL);
    return sensor * 100 + n;
}

static void *observe(void *which) {
    for (int n = 0; n < READINGS; n++) {
        long value = measure((long)which, n);
        pthread_mutex_lock(&lock);
        total += value;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    pthread_t thread[SENSORS];
    for (long n = 0; n < SENSORS; n++)
        if (pthread_create(&thread[n], NULL, observe, (void *)n)) return 1;
    for (int n = 0; n < SENSORS; n++) pthread_join(thread[n], NULL);
    printf("sum %ld\n", total);
    return 0;
}
