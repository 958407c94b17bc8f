/* Counts the different keys of a list. Each is compared with all before it: two short loops, quick while the list was short. */
#include <stdio.h>
#include <string.h>

int main(int count, char **words) {
    static char buffer[65536], keys[32000][32];
    char line[128];
    int lines = 0, different = 0;
    FILE *in = fopen(words[count - 1], "r");
    if (!in) return perror(words[count - 1]), 1;
    setvbuf(in, buffer, _IOFBF, sizeof buffer);
    while (lines < 32000 && fgets(line, sizeof line, in)) sscanf(line, "%*d,%31[^,]", keys[lines++]);
    for (int i = 0; i < lines; i++) {
        int seen = 0;
        for (int j = 0; j < i && !seen; j++) seen = strcmp(keys[i], keys[j]) == 0;
        different += !seen;
    }
    printf("%d of %d\n", different, lines);
}
