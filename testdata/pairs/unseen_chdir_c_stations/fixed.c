/* Checks the folders of stations. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STATIONS = 40, ROUNDS = 3000 };

int main(int count, char **words) {
    char station[4096];
    struct stat found;
    long total = 0;
    if (count < 2 || chdir(words[1])) return 1;
    for (int n = 0; n < STATIONS; n++) {
        snprintf(station, sizeof station, "station%02d", n);
        if (mkdir(station, 0755)) return 1;
    }
    for (int n = 0; n < ROUNDS * STATIONS; n++) {
        snprintf(station, sizeof station, "station%02d", n % STATIONS);
        if (stat(station, &found)) return 1;
        total += S_ISDIR(found.st_mode);
    }
    printf("%ld folders\n", total);
    return 0;
}
