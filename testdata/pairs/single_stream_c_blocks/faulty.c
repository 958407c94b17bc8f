/* Adds up a file on a server, 64 KiB at a time: read, add, read, add. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char **words) {
    static uint8_t block[65536];
    uint64_t sum = 0;
    int file = open(words[count - 1], O_RDONLY);
    if (file < 0) return perror(words[count - 1]), 1;
    for (ssize_t got; (got = read(file, block, sizeof block)) > 0;)
        for (ssize_t i = 0; i < got; i++) sum += block[i];
    printf("sum %lu\n", sum);
}
