/* Checks records. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS = 600, TABLE = 16 << 20 };

static unsigned char *table;

static int check(int record) {
    unsigned sum = 0;
    for (int n = 0; n < 2000; n++) sum = sum * 31 + table[(record * 7919u + n * 4099u) % TABLE];
    return sum % 7 == 0;
}

int main(void) {
    int found = 0;
    if (!(table = malloc(TABLE))) return 1;
    for (int n = 0; n < TABLE; n++) table[n] = n * 2654435761u >> 24;
    for (int n = 0; n < RECORDS; n++) {
        found += check(n);
    }
    printf("%d of %d records\n", found, RECORDS);
    return 0;
}
