/* Checks records. */
#include <stdio.h>

enum { RECORDS = 1500000 };

int main(void) {
    unsigned long check = 1;
    for (long n = 0; n < RECORDS; n++) {
        for (int k = 0; k < 20; k++) check = check * 31 + n % (k + 1);
    }
    printf("check %lu\n", check % 1000000);
    return 0;
}
