/* Sends the lines of a picture to a display, one at each tick. The first display hung on a slow serial cable. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINES = 64, WIDTH = 480 };

/* The display: takes all that comes. */
static int show(int link) {
    char line[WIDTH];
    int sum = 0;
    for (ssize_t got; (got = read(link, line, sizeof line)) > 0;)
        for (ssize_t n = 0; n < got; n++) sum += line[n];
    return sum % 200;
}

int main(void) {
    int link[2], status;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, link)) return 1;
    if (fork() == 0) {
        close(link[0]);
        _exit(show(link[1]));
    }
    close(link[1]);
    int clock = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec tick = {{0, 12000000}, {0, 12000000}};
    if (timerfd_settime(clock, 0, &tick, NULL)) return 1;
    for (int n = 0; n < LINES; n++) {
        char line[WIDTH];
        uint64_t ticks;
        memset(line, n, sizeof line);
        if (read(clock, &ticks, sizeof ticks) != sizeof ticks) return 1;
        if (write(link[0], line, sizeof line) != sizeof line) return 1;
    }
    close(link[0]);
    wait(&status);
    printf("the display shows %d\n", WEXITSTATUS(status));
    return 0;
}
