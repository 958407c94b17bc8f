/* Writes the local time of each event into a log. With TZ set, the zone is looked up once. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(void) {
    unsigned long sum = 0;
    // A name with a colon is a file; without TZ, the library asks at each call whether it has changed.
    setenv("TZ", ":/etc/localtime", 1);
    for (long n = 0; n < 700000; n++) {
        time_t moment = 1500000000 + n * 61;
        struct tm *parts = localtime(&moment);
        sum = sum * 31 + (unsigned long)(parts->tm_hour * 60 + parts->tm_min);
    }
    printf("checksum %lu\n", sum);
    return 0;
}
