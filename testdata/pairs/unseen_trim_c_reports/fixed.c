/* Makes reports. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPORTS = 6000, PARTS = 14, SIZE = 8000 };

int main(void) {
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
