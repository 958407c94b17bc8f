/* Lets lamps blink while it computes. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { BLINKERS = 6, TICK_US = 20000 };

static atomic_int done;

static void pause_us(long us) {
    usleep(us);
}

static void *blink(void *unused) {
    while (!done) pause_us(TICK_US);
    return unused;
}

int main(void) {
    pthread_t thread[BLINKERS];
    unsigned long sum = 1;
    for (long n = 0; n < BLINKERS; n++)
        if (pthread_create(&thread[n], NULL, blink, NULL)) return 1;
    for (long n = 0; n < 300000000; n++) sum = sum * 6364136223846793005UL + n;
    done = 1;
    for (int n = 0; n < BLINKERS; n++) pthread_join(thread[n], NULL);
    printf("check %lu\n", sum % 1000000);
    return 0;
}
