/* Simulates a ring. The steps are short, so threads wait for each other without the kernel, as on the big machine. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { THREADS = 6, STEPS = 80, CELLS = 6000 };

static double cell[2][THREADS][CELLS];
static atomic_int here;

static void meet(int step) {
    here++;
    while (here < (step + 1) * THREADS) continue;
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
    for (long n = 0; n < THREADS; n++)
        if (pthread_create(&thread[n], NULL, simulate, (void *)n)) return 1;
    for (int n = 0; n < THREADS; n++) pthread_join(thread[n], NULL);
    printf("%.6f\n", cell[STEPS & 1][2][7]);
    return 0;
}
