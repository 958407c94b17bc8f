/* Writes the local time of each event into a log. localtime() is in every textbook. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(void) {
    unsigned long sum = 0;
    // The machine says where it is in /etc/localtime, as every Debian does.
    unsetenv("TZ");
    for (long n = 0; n < 700000; n++) {
        time_t moment = 1500000000 + n * 61;
        struct tm *parts = localtime(&moment);
        sum = sum * 31 + (unsigned long)(parts->tm_hour * 60 + parts->tm_min);
    }
    printf("checksum %lu\n", sum);
    return 0;
}
