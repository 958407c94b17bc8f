/* Sends the lines of a picture to a display, as fast as it takes them. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
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
    for (int n = 0; n < LINES; n++) {
        char line[WIDTH];
        memset(line, n, sizeof line);
        if (write(link[0], line, sizeof line) != sizeof line) return 1;
    }
    close(link[0]);
    wait(&status);
    printf("the display shows %d\n", WEXITSTATUS(status));
    return 0;
}
