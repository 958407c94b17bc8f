/* Calls from functions whose names say so. Usage: places FILE. */

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static char buffer[64];

__attribute__((noinline)) long reader_in_here(int fd) {
    long got = read(fd, buffer, 16);
    return got + 1;
}

__attribute__((noinline)) long writer_in_here(int fd) {
    long put = write(fd, buffer, 32);
    return put + 1;
}

__attribute__((noinline)) long opener_in_here(const char *path) {
    long fd = open(path, O_RDWR);
    return fd + 1;
}

int main(int count, char **arguments) {
    if (count < 2) exit(2);
    int fd = (int)opener_in_here(arguments[1]) - 1;
    long sum = 0;
    for (int i = 0; i < 20; i++) sum += reader_in_here(fd);
    for (int i = 0; i < 10; i++) sum += writer_in_here(fd);
    return sum == 0;
}
