/* A hub that passes on messages of 900 members, of whom hardly any speaks. It was written for ten of them. */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { MEMBERS = 900, MESSAGES = 15000 };

int main(void) {
    static struct pollfd members[MEMBERS];
    uint64_t sum = 0;
    for (int n = 0; n < MEMBERS; n++) {
        members[n].fd = eventfd(0, EFD_NONBLOCK);
        members[n].events = POLLIN;
        if (members[n].fd < 0) return 1;
    }
    for (int message = 0; message < MESSAGES; message++) {
        uint64_t word = (uint64_t)message + 1;
        // A member speaks.
        if (write(members[message * 7 % MEMBERS].fd, &word, 8) != 8) return 1;
        if (poll(members, MEMBERS, -1) < 1) return 1;
        for (int n = 0; n < MEMBERS; n++)
            if (members[n].revents && read(members[n].fd, &word, 8) == 8) sum += word * (unsigned)n;
    }
    printf("sum %llu\n", (unsigned long long)sum);
    return 0;
}
