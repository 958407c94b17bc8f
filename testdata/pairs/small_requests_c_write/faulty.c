/* Writes a table of squares. It calls write() for each record, as people do who want "no hidden buffering". */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char **words) {
    char line[64];
    int out = open(words[count - 1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (out < 0) return perror(words[count - 1]), 1;
    for (long n = 0; n < 8000; n++) {
        int size = snprintf(line, sizeof line, "%ld,%ld,%ld\n", n, n * n, n * n * n);
        if (write(out, line, size) != size) return perror("write"), 1;
    }
    close(out);
    puts("8000 records");
}
