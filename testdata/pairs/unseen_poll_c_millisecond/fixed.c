/* Asks a solver, which is a process of its own, and waits for its answer; both use a pipe. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { QUESTIONS = 400 };

int main(void) {
    int ask[2], answer[2], number, status;
    long sum = 0;
    if (pipe(ask) || pipe(answer)) return 1;
    if (fork() == 0) {
        close(ask[1]);
        while (read(ask[0], &number, sizeof number) == sizeof number) {
            number *= 2;
            if (write(answer[1], &number, sizeof number) != sizeof number) _exit(1);
        }
        _exit(0);
    }
    for (int n = 0; n < QUESTIONS; n++) {
        if (write(ask[1], &n, sizeof n) != sizeof n || read(answer[0], &number, sizeof number) != sizeof number)
            return 1;
        sum += number;
    }
    close(ask[1]);
    wait(&status);
    printf("sum %ld\n", sum);
    return status;
}
