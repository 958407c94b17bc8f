/* Finds the largest sum of a record. */
#include <stdint.h>
#include <stdio.h>

enum { RECORD = 8192 };

int main(int count, char **words) {
    static char buffer[1 << 18]; /* glibc takes no notice of the size without a buffer */
    static uint8_t record[RECORD];
    uint64_t largest = 0;
    long where = 0;
    FILE *file = fopen(words[count - 1], "rb");
    if (!file) return perror(words[count - 1]), 1;
    setvbuf(file, buffer, _IOFBF, sizeof buffer);
    for (long n = 0; fread(record, RECORD, 1, file) == 1; n++) {
        uint64_t sum = n * 31 % 977;
        for (int i = 0; i < RECORD; i++) sum += record[i];
        if (sum > largest) largest = sum, where = n;
    }
    printf("record %ld, sum %lu\n", where, largest);
}
