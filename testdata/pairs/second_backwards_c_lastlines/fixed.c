/* Finds the last 90,000 lines of a log, from its end backwards, a piece of 64 KiB at a time. */
#include <stdio.h>

enum { WANTED = 90000, PIECE = 65536 };

int main(int count, char **words) {
    static char piece[PIECE];
    FILE *log = count > 1 ? fopen(words[1], "r") : NULL;
    if (!log || fseek(log, 0, SEEK_END)) return 1;
    long place = ftell(log);
    int lines = -1;
    setvbuf(log, NULL, _IONBF, 0);
    while (place > 0 && lines < WANTED) {
        size_t length = place < PIECE ? (size_t)place : PIECE;
        long start = place - (long)length;
        fseek(log, start, SEEK_SET);
        if (fread(piece, 1, length, log) != length) return 1;
        while (place > start && lines < WANTED)
            if (piece[--place - start] == '\n') lines++;
    }
    printf("line %d from the end ends at %ld\n", lines, place);
    fclose(log);
    return 0;
}
