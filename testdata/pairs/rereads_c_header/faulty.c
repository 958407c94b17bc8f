/* Scales each record of a file by the factors in its header. get_record() is written to stand alone: it looks up the
 * factors in the header each time, as a library does that keeps no state. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { HEADER = 65536, RECORD = 4096 };

static ssize_t get_record(int file, long n, uint8_t *record) {
    static uint8_t header[HEADER];
    if (pread(file, header, HEADER, 0) != HEADER) return -1;
    ssize_t got = pread(file, record, RECORD, HEADER + n * RECORD);
    for (ssize_t i = 0; i < got; i++) record[i] *= header[n % HEADER];
    return got;
}

int main(int count, char **words) {
    uint8_t record[RECORD];
    uint64_t sum = 0;
    long n = 0;
    int file = open(words[count - 1], O_RDONLY);
    if (file < 0) return perror(words[count - 1]), 1;
    for (ssize_t got; (got = get_record(file, n, record)) > 0; n++)
        for (ssize_t i = 0; i < got; i++) sum += record[i];
    printf("%ld records, sum %lu\n", n, sum);
}
