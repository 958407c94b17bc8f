/* Adds up events, read one behind the other. */
#include <stdint.h>
#include <stdio.h>

struct header { int64_t number, length; char unused[16]; };

int main(int count, char **words) {
    static char buffer[65536]; /* glibc takes no notice of the size without a buffer */
    static uint8_t body[65536];
    struct header head;
    uint64_t sum = 0;
    long events = 0;
    FILE *file = fopen(words[count - 1], "rb");
    if (!file) return perror(words[count - 1]), 1;
    setvbuf(file, buffer, _IOFBF, sizeof buffer);
    for (; fread(&head, sizeof head, 1, file) == 1; events++) {
        if (head.length > (int64_t)sizeof body || fread(body, head.length, 1, file) != 1) return perror("event"), 1;
        for (int64_t i = 0; i < head.length; i++) sum += body[i];
    }
    printf("%ld events, sum %lu\n", events, sum);
}
