/* Finds the largest sum of a record. It seeks to the place of record n, since it was copied from a program that jumps, and
 * seeks to the end and back to learn how many there are. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { RECORD = 8192 };

int main(int count, char **words) {
    static uint8_t record[RECORD];
    uint64_t largest = 0;
    long where = 0;
    int file = open(words[count - 1], O_RDONLY);
    if (file < 0) return perror(words[count - 1]), 1;
    for (long n = 0; n < lseek(file, 0, SEEK_END) / RECORD; n++) {
        uint64_t sum = n * 31 % 977;
        lseek(file, n * RECORD, SEEK_SET);
        if (read(file, record, RECORD) != RECORD) return perror("read"), 1;
        for (int i = 0; i < RECORD; i++) sum += record[i];
        if (sum > largest) largest = sum, where = n;
    }
    printf("record %ld, sum %lu\n", where, largest);
}
