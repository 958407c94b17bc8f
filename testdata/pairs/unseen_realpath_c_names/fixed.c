/* Notes which runs were used, with full paths; only the folder may have dots and links. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAMES = 100000 };

int main(int count, char **words) {
    char name[4200], full[4200];
    size_t sum = 0;
    if (count < 2 || chdir(words[1])) return 1;
    if (mkdir("data", 0755) || mkdir("data/2024", 0755) || mkdir("data/2024/spring", 0755)) return 1;
    for (int n = 0; n < 16; n++) {
        snprintf(name, sizeof name, "data/2024/spring/run%02d", n);
        FILE *run = fopen(name, "w");
        if (!run || fclose(run)) return 1;
    }
    char folder[4096];
    if (!realpath("data/2024/spring", folder)) return 1;
    for (int n = 0; n < NAMES; n++) {
        snprintf(name, sizeof name, "%s/run%02d", folder, n % 16);
        memcpy(full, name, sizeof name);
        sum += strlen(strstr(full, "/data/"));
    }
    printf("%zu letters\n", sum);
    return 0;
}
