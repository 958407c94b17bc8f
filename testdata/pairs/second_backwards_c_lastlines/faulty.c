/* Finds the last 90,000 lines of a log, from its end backwards: one character, and the one before it, and so on. */
#include <stdio.h>

enum { WANTED = 90000 };

int main(int count, char **words) {
    FILE *log = count > 1 ? fopen(words[1], "r") : NULL;
    if (!log || fseek(log, 0, SEEK_END)) return 1;
    long place = ftell(log);
    int lines = -1;
    while (place > 0 && lines < WANTED) {
        fseek(log, --place, SEEK_SET);
        if (fgetc(log) == '\n') lines++;
    }
    printf("line %d from the end ends at %ld\n", lines, place);
    fclose(log);
    return 0;
}
