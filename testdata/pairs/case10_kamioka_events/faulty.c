/* Adds up events. It peeks at the header to learn the length, goes back, and reads the event as a whole, asking for the
 * position as it goes. A C++ stream does what fill() and tell() do here: a seek empties its buffer of 8 KiB. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct header { int64_t number, length; char unused[16]; };
static uint8_t buffer[8192];

static off_t tell(int file) { return lseek(file, 0, SEEK_CUR); }

static ssize_t fill(int file, off_t at) {
    lseek(file, at, SEEK_SET);
    return read(file, buffer, sizeof buffer);
}

int main(int count, char **words) {
    struct header head;
    uint64_t sum = 0;
    long events = 0;
    int file = open(words[count - 1], O_RDONLY);
    if (file < 0) return perror(words[count - 1]), 1;
    for (off_t at = 0; fill(file, at) >= (ssize_t)sizeof head; events++) {
        memcpy(&head, buffer, sizeof head);
        if (tell(file) < at || fill(file, at) < (ssize_t)sizeof head + head.length) return perror("event"), 1;
        for (int64_t i = 0; i < head.length; i++) sum += buffer[sizeof head + i];
        at += sizeof head + head.length;
    }
    printf("%ld events, sum %lu\n", events, sum);
}
