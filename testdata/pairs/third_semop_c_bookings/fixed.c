/* Books amounts to accounts that other processes may use, under a mutex in shared memory. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { ACCOUNTS = 64, BOOKINGS = 900000 };

static long balances[ACCOUNTS];

int main(void) {
    unsigned next = 1;
    pthread_mutex_t *lock = mmap(NULL, sizeof *lock, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t kind;
    if (lock == MAP_FAILED) return 1;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(lock, &kind);
    for (int n = 0; n < BOOKINGS; n++) {
        next = next * 1103515245 + 12345;
        pthread_mutex_lock(lock);
        balances[next / 65536 % ACCOUNTS] += next / 4096 % 200;
        pthread_mutex_unlock(lock);
    }
    long sum = 0;
    for (int n = 0; n < ACCOUNTS; n++) sum += balances[n] * (n + 1);
    printf("sum %ld\n", sum);
    munmap(lock, sizeof *lock);
    return 0;
}
