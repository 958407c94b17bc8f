/* Simulates a ring. */
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 6, STEPS = 80, CELLS = 6000 };

static double cell[2][THREADS][CELLS];
static pthread_barrier_t barrier;

static void meet(int step) {
    (void)step;
    pthread_barrier_wait(&barrier);
}

static void *simulate(void *which) {
    long own = (long)which, left = (own + THREADS - 1) % THREADS;
    for (int step = 0; step < STEPS; step++) {
        for (int n = 0; n < CELLS; n++)
            cell[!(step & 1)][own][n] = cell[step & 1][own][n] * 0.75 + cell[step & 1][left][n] * 0.25 + own;
        meet(step);
    }
    return NULL;
}

int main(void) {
    pthread_t thread[THREADS];
    if (pthread_barrier_init(&barrier, NULL, THREADS)) return 1;
    for (long n = 0; n < THREADS; n++)
        if (pthread_create(&thread[n], NULL, simulate, (void *)n)) return 1;
    for (int n = 0; n < THREADS; n++) pthread_join(thread[n], NULL);
    printf("%.6f\n", cell[STEPS & 1][2][7]);
    return 0;
}
