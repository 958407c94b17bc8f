/* Books amounts to accounts that other processes may use, under a System V semaphore. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/sem.h>

enum { ACCOUNTS = 64, BOOKINGS = 900000 };

static long balances[ACCOUNTS];

static void change(int lock, short by) {
    struct sembuf step = {.sem_op = by, .sem_flg = SEM_UNDO};
    if (semop(lock, &step, 1)) abort();
}

int main(void) {
    unsigned next = 1;
    int lock = semget(IPC_PRIVATE, 1, 0600);
    if (lock < 0) return 1;
    change(lock, 1);
    for (int n = 0; n < BOOKINGS; n++) {
        next = next * 1103515245 + 12345;
        change(lock, -1);
        balances[next / 65536 % ACCOUNTS] += next / 4096 % 200;
        change(lock, 1);
    }
    long sum = 0;
    for (int n = 0; n < ACCOUNTS; n++) sum += balances[n] * (n + 1);
    printf("sum %ld\n", sum);
    semctl(lock, 0, IPC_RMID);
    return 0;
}
