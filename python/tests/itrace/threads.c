// Three threads, each of which calls `work` a known number of times, and a child.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) int work(int n) {
    __asm__ volatile("" : "+r"(n));
    return n + 1;
}

static void *run(void *times) {
    int sum = 0;
    for (long i = 0; i < (long)times; i++)
        sum = work(sum);
    return 0;
}

int main(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, run, (void *)(10 * (i + 1)));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    if (fork() == 0) {
        run((void *)30);
        _exit(0);
    }
    int status;
    wait(&status);
    run((void *)5);
    return 3;
}
