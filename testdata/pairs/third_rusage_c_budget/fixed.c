/* Works off a table, and gives up soon after its minute of CPU time is used up. */
#include <stdio.h>
#include <sys/resource.h>

enum { ROWS = 1300000, BUDGET_S = 60, STRIDE = 4096 };

static int overdrawn(void) {
    struct rusage used;
    return getrusage(RUSAGE_SELF, &used) || used.ru_utime.tv_sec + used.ru_stime.tv_sec > BUDGET_S;
}

int main(void) {
    unsigned sum = 1;
    for (unsigned row = 0; row < ROWS; row++) {
        if (row % STRIDE == 0 && overdrawn()) return 1;
        sum = sum * 31 + row % 17;
    }
    printf("sum %u\n", sum);
    return 0;
}
