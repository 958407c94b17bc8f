/* A hub that passes on messages of 900 members, of whom hardly any speaks. It hears only of those who do. */
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { MEMBERS = 900, MESSAGES = 15000 };

int main(void) {
    static int members[MEMBERS];
    uint64_t sum = 0;
    int hub = epoll_create1(0);
    for (int n = 0; n < MEMBERS; n++) {
        struct epoll_event wanted = {.events = EPOLLIN, .data.u32 = (uint32_t)n};
        members[n] = eventfd(0, EFD_NONBLOCK);
        if (members[n] < 0 || epoll_ctl(hub, EPOLL_CTL_ADD, members[n], &wanted)) return 1;
    }
    for (int message = 0; message < MESSAGES; message++) {
        uint64_t word = (uint64_t)message + 1;
        struct epoll_event ready[64];
        // A member speaks.
        if (write(members[message * 7 % MEMBERS], &word, 8) != 8) return 1;
        int number = epoll_wait(hub, ready, 64, -1);
        for (int n = 0; n < number; n++)
            if (read(members[ready[n].data.u32], &word, 8) == 8) sum += word * ready[n].data.u32;
    }
    printf("sum %llu\n", (unsigned long long)sum);
    return 0;
}
