/* Gives jobs to a worker through shared memory, a thousand at a time. */
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS = 35000, BATCH = 1000 };

int main(void) {
    sigset_t set;
    int got, status, parent = getpid();
    long *job = mmap(NULL, JOBS * sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), sum = 0;
    if (job == MAP_FAILED) return 1;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int worker = fork();
    if (worker == 0) {
        for (int n = 0; n < JOBS; n += BATCH) {
            if (sigwait(&set, &got)) _exit(1);
            for (int k = n; k < n + BATCH; k++) job[k] = job[k] * 3 + 1;
            if (kill(parent, SIGUSR1)) _exit(1);
        }
        _exit(0);
    }
    for (int n = 0; n < JOBS; n += BATCH) {
        for (int k = n; k < n + BATCH; k++) job[k] = k;
        if (kill(worker, SIGUSR1) || sigwait(&set, &got)) return 1;
    }
    wait(&status);
    for (int n = 0; n < JOBS; n++) sum += job[n];
    printf("sum %ld\n", sum);
    return status;
}
