// Signals that are handled, and one that ends the program, if a number is given.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static volatile int count;

static void one(int number) { count += number == SIGUSR1; }
static void both(int number) { count += number == SIGUSR2 || number == SIGALRM; }

int main(int argc, char **argv) {
    signal(SIGUSR1, one);
    signal(SIGUSR2, both);
    signal(SIGALRM, both);
    raise(SIGUSR1);
    raise(SIGUSR2);
    ualarm(1000, 0);
    while (count < 3)
        ;
    if (argc > 1 && atoi(argv[1]) == SIGSEGV)
        *(volatile int *)8 = 1;
    if (argc > 1)
        raise(atoi(argv[1]));
    return 0;
}
