/* Makes reports. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPORTS = 1500, PARTS = 60, SIZE = 8000 };

int main(void) {
    /* The heap of one report, which malloc would otherwise shrink by itself. */
    mallopt(M_TRIM_THRESHOLD, 16 << 20);
    char *part[PARTS];
    long sum = 0;
    for (int n = 0; n < REPORTS; n++) {
        for (int k = 0; k < PARTS; k++) {
            if (!(part[k] = malloc(SIZE))) return 1;
            memset(part[k], k, SIZE);
        }
        for (int k = 0; k < PARTS; k++) {
            sum += part[k][n % SIZE];
            free(part[k]);
        }
    }
    printf("sum %ld\n", sum);
    return 0;
}
