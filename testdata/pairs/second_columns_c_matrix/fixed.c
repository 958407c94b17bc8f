/* Adds up a table of rainfall, station by station, as it lies in memory. */
#include <stdio.h>
#include <stdlib.h>

enum { STATIONS = 2048, DAYS = 4096, TIMES = 12 };

__attribute__((noinline)) double add_rainfall(const double *table) {
    double sum = 0;
    for (int station = 0; station < STATIONS; station++)
        for (int day = 0; day < DAYS; day++) sum += table[(long)station * DAYS + day];
    return sum;
}

int main(void) {
    double *table = malloc(sizeof *table * STATIONS * DAYS), sum = 0;
    if (!table) return 1;
    for (long n = 0; n < (long)STATIONS * DAYS; n++) table[n] = (double)(n % 64);
    for (int year = 0; year < TIMES; year++) {
        table[year] += 1;
        sum += add_rainfall(table);
    }
    printf("sum %.0f\n", sum);
    free(table);
    return 0;
}
