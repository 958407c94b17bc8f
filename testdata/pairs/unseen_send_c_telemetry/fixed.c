/* Sends measured values to a collector, 2,000 at a time. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { VALUES = 350000 };

struct value {
    long when, sensor, number;
};

/* The collector: adds up all that it is sent. */
static int collect(int from) {
    static struct value got[2730];
    size_t rest = 0;
    long sum = 0;
    for (ssize_t more; (more = recv(from, (char *)got + rest, sizeof got - rest, 0)) > 0;) {
        size_t whole = (rest + more) / sizeof *got;
        for (size_t n = 0; n < whole; n++) sum += got[n].number;
        rest = (rest + more) % sizeof *got;
        memmove(got, got + whole, rest);
    }
    printf("sum %ld\n", sum);
    return fflush(stdout);
}

int main(void) {
    int end[2], status;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, end)) return 1;
    if (fork() == 0) {
        close(end[0]);
        _exit(collect(end[1]));
    }
    close(end[1]);
    static struct value block[2000];
    int held = 0;
    for (long n = 0; n < VALUES; n++) {
        struct value value = {n / 1000, n % 40, n % 997};
        block[held++] = value;
        if (held == 2000 || n == VALUES - 1) {
            ssize_t size = held * sizeof value;
            if (send(end[0], block, size, 0) != size) return 1;
            held = 0;
        }
    }
    close(end[0]);
    wait(&status);
    return status;
}
