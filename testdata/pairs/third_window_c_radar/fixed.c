/* Sends radar pictures to a station, which takes as much unread data as the kernel finds right. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 65536, PIECES = 2400 };

static char piece[LENGTH];

static int receive(const struct sockaddr_in *address) {
    int station = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(station, (const struct sockaddr *)address, sizeof *address)) return 1;
    long total = 0;
    ssize_t got;
    while ((got = read(station, piece, LENGTH)) > 0) total += got;
    printf("%ld bytes received\n", total);
    return got < 0;
}

int main(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 8)) return 1;
    if (getsockname(listener, (struct sockaddr *)&address, &size)) return 1;
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) exit(receive(&address));
    int receiver = accept(listener, NULL, NULL);
    for (int n = 0; n < PIECES; n++)
        for (ssize_t sent = 0, now; sent < LENGTH; sent += now)
            if ((now = write(receiver, piece + sent, (size_t)(LENGTH - sent))) <= 0) return 1;
    close(receiver);
    int status;
    return waitpid(child, &status, 0) != child || status;
}
