/* Logs the primes below 60,000, in colour where a person looks on. */
#include <stdio.h>
#include <unistd.h>

int main(int count, char **words) {
    static char buffer[65536], composite[60000];
    long primes = 0;
    FILE *out = fopen(words[count - 1], "w");
    if (!out) return perror(words[count - 1]), 1;
    setvbuf(out, buffer, _IOFBF, sizeof buffer);
    const char *format = isatty(fileno(out)) ? "\033[32mprime\033[0m %ld\n" : "prime %ld\n";
    for (long n = 2; n < 60000; n++) {
        if (composite[n]) continue;
        fprintf(out, format, n);
        primes++;
        for (long m = n * n; m < 60000; m += n) composite[m] = 1;
    }
    fclose(out);
    printf("%ld primes\n", primes);
}
