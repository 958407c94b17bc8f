/* Writes a table of squares, through a buffer of 64 KiB. */
#include <stdio.h>

int main(int count, char **words) {
    static char buffer[65536]; /* glibc takes no notice of the size without a buffer */
    FILE *out = fopen(words[count - 1], "w");
    if (!out) return perror(words[count - 1]), 1;
    setvbuf(out, buffer, _IOFBF, sizeof buffer);
    for (long n = 0; n < 8000; n++) fprintf(out, "%ld,%ld,%ld\n", n, n * n, n * n * n);
    if (fclose(out)) return perror("write"), 1;
    puts("8000 records");
}
