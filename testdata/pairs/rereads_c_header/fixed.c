/* Scales each record of a file by the factors in its header. */
#include <stdint.h>
#include <stdio.h>

enum { HEADER = 65536, RECORD = 4096 };

int main(int count, char **words) {
    static char buffer[1 << 18]; /* glibc takes no notice of the size without a buffer */
    static uint8_t header[HEADER], record[RECORD];
    uint64_t sum = 0;
    long n = 0;
    FILE *file = fopen(words[count - 1], "rb");
    if (!file) return perror(words[count - 1]), 1;
    setvbuf(file, buffer, _IOFBF, sizeof buffer);
    if (fread(header, HEADER, 1, file) != 1) return perror("header"), 1;
    for (; fread(record, RECORD, 1, file) == 1; n++)
        for (int i = 0; i < RECORD; i++) sum += (uint8_t)(record[i] * header[n % HEADER]);
    printf("%ld records, sum %lu\n", n, sum);
}
