/* Logs the primes below 60,000, in colour where a person looks on. say() decides itself, line by line. */
#include <stdio.h>
#include <unistd.h>

static void say(FILE *out, long prime) {
    if (isatty(fileno(out))) fprintf(out, "\033[32mprime\033[0m %ld\n", prime);
    else fprintf(out, "prime %ld\n", prime);
}

int main(int count, char **words) {
    static char buffer[65536], composite[60000];
    long primes = 0;
    FILE *out = fopen(words[count - 1], "w");
    if (!out) return perror(words[count - 1]), 1;
    setvbuf(out, buffer, _IOFBF, sizeof buffer);
    for (long n = 2; n < 60000; n++) {
        if (composite[n]) continue;
        say(out, n);
        primes++;
        for (long m = n * n; m < 60000; m += n) composite[m] = 1;
    }
    fclose(out);
    printf("%ld primes\n", primes);
}
