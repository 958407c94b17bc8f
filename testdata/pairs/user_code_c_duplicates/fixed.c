/* Counts the different keys of a list, sorted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) { return strcmp(a, b); }

int main(int count, char **words) {
    static char buffer[65536], keys[32000][32];
    char line[128];
    int lines = 0, different = 0;
    FILE *in = fopen(words[count - 1], "r");
    if (!in) return perror(words[count - 1]), 1;
    setvbuf(in, buffer, _IOFBF, sizeof buffer);
    while (lines < 32000 && fgets(line, sizeof line, in)) sscanf(line, "%*d,%31[^,]", keys[lines++]);
    qsort(keys, lines, sizeof keys[0], compare);
    for (int i = 0; i < lines; i++) different += i == 0 || strcmp(keys[i], keys[i - 1]) != 0;
    printf("%d of %d\n", different, lines);
}
