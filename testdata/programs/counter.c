/* Writes that say when they were made: number i, 16 bytes of time (nanoseconds, realtime) and number, goes to place 16 * i of FILE.
 * Usage: counter FILE COUNT PAUSE [STATUS]. Pauses for so many nanoseconds behind each. Ends after COUNT of them, or when FILE.stop is
 * there; then FILE.done has how many there are. Exit status STATUS, or 0.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int count, char **arguments) {
    char stop[4096], done[4096];
    if (count < 4) return 2;
    snprintf(stop, sizeof stop, "%s.stop", arguments[1]);
    snprintf(done, sizeof done, "%s.done", arguments[1]);
    int fd = open(arguments[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    long long wanted = atoll(arguments[2]), number = 0;
    while (number < wanted && (number % 256 || access(stop, F_OK))) {
        struct timespec now, pause = {0, atoll(arguments[3])};
        clock_gettime(CLOCK_REALTIME, &now);
        long long record[2] = {now.tv_sec * 1000000000LL + now.tv_nsec, number};
        if (pwrite(fd, record, sizeof record, sizeof record * number) != sizeof record) return 3;
        number++;
        if (pause.tv_nsec) nanosleep(&pause, NULL);
    }
    FILE *file = fopen(done, "w");
    if (!file) return 4;
    fprintf(file, "%lld\n", number);
    if (fclose(file)) return 4;
    return count > 4 ? atoi(arguments[4]) : 0;
}
