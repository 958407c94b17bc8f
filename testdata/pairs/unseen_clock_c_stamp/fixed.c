/* Puts time stamps on events. */
#include <stdio.h>
#include <time.h>

enum { EVENTS = 1500000 };

int main(void) {
    struct timespec now = {0}, last = {0};
    long backwards = 0, sum = 0;
    for (long n = 0; n < EVENTS; n++) {
        sum += n * n % 11;
        if (clock_gettime(CLOCK_MONOTONIC, &now)) return 1;
        backwards += now.tv_sec < last.tv_sec;
        last = now;
    }
    printf("sum %ld, %ld times backwards\n", sum, backwards);
    return 0;
}
