// Sorts and formats numbers: functions whose instructions another tool counts, too.
#include <stdio.h>
#include <stdlib.h>

static int compare(const void *one, const void *other) {
    return *(const int *)one - *(const int *)other;
}

int main(void) {
    static int numbers[300];
    char text[32];
    unsigned last = 1;
    int sum = 0;
    for (int i = 0; i < 300; i++) {
        last = last * 1103515245 + 12345;
        numbers[i] = last >> 16 & 0x7fff;
    }
    qsort(numbers, 300, sizeof numbers[0], compare);
    for (int i = 0; i < 100; i++)
        sum += sprintf(text, "%d", numbers[i]);
    return sum == 0;
}
