/* Sends orders to a server and waits for the answer to each. Head and body leave together. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ORDERS = 20, BODY = 100 };

static int fill(int from, void *data, size_t length) {
    for (size_t got = 0; got < length;) {
        ssize_t more = read(from, (char *)data + got, length - got);
        if (more <= 0) return 1;
        got += more;
    }
    return 0;
}

/* The other side: answers each order with its sum. */
static int serve(int listener) {
    unsigned char body[BODY];
    uint32_t length, sum;
    int peer = accept(listener, NULL, NULL);
    while (!fill(peer, &length, sizeof length) && length == BODY && !fill(peer, body, BODY)) {
        sum = 0;
        for (int n = 0; n < BODY; n++) sum += body[n];
        if (write(peer, &sum, sizeof sum) != sizeof sum) return 1;
    }
    return 0;
}

int main(void) {
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof place;
    unsigned char body[BODY];
    uint32_t length = BODY, sum;
    struct iovec parts[] = {{&length, sizeof length}, {body, BODY}};
    long total = 0;
    int status, server = socket(AF_INET, SOCK_STREAM, 0), listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&place, size) || listen(listener, 1)) return 1;
    if (getsockname(listener, (struct sockaddr *)&place, &size)) return 1;
    if (fork() == 0) {
        close(server);
        _exit(serve(listener));
    }
    if (connect(server, (struct sockaddr *)&place, size)) return 1;
    for (int n = 0; n < ORDERS; n++) {
        memset(body, n, BODY);
        if (writev(server, parts, 2) != sizeof length + BODY) return 1;
        if (fill(server, &sum, sizeof sum)) return 1;
        total += sum;
    }
    close(server);
    wait(&status);
    printf("total %ld\n", total);
    return status;
}
