/* Reads events of many sources, as many at a time as are ready. */
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { SOURCES = 500, ROUNDS = 1000, AT_ONCE = SOURCES };

int main(void) {
    static struct epoll_event ready[AT_ONCE];
    static long count[SOURCES];
    int source[SOURCES], watch = epoll_create1(0);
    long sum = 0;
    for (int n = 0; n < SOURCES; n++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = n};
        /* Each source has as much to say as there are rounds. */
        source[n] = eventfd(ROUNDS, EFD_SEMAPHORE);
        if (source[n] < 0 || epoll_ctl(watch, EPOLL_CTL_ADD, source[n], &event)) return 1;
    }
    for (long left = (long)SOURCES * ROUNDS; left > 0;) {
        uint64_t one;
        int found = epoll_wait(watch, ready, AT_ONCE, -1);
        for (int n = 0; n < found; n++) {
            int which = ready[n].data.u32;
            if (read(source[which], &one, sizeof one) != sizeof one) return 1;
            count[which] += one;
            left--;
        }
    }
    for (int n = 0; n < SOURCES; n++) sum += count[n];
    printf("%ld events\n", sum);
    return 0;
}
