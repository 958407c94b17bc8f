/* Sorts records into a file for each of four stations. */
#include <stdio.h>

enum { RECORD = 4096, BLOCK = 64, STATIONS = 4 };

int main(int count, char **words) {
    static char buffers[STATIONS][65536];
    static unsigned char block[BLOCK][RECORD];
    FILE *out[STATIONS];
    char path[4096];
    long records = 0;
    FILE *in = fopen(words[1], "rb");
    if (!in) return perror(words[1]), 1;
    for (int s = 0; s < STATIONS; s++) {
        snprintf(path, sizeof path, "%s/station%d.bin", words[count - 1], s);
        if (!(out[s] = fopen(path, "wb"))) return perror(path), 1;
        setvbuf(out[s], buffers[s], _IOFBF, sizeof buffers[s]);
    }
    for (size_t got; (got = fread(block, RECORD, BLOCK, in));)
        for (size_t i = 0; i < got; i++, records++) fwrite(block[i], RECORD, 1, out[(block[i][0] + records) % STATIONS]);
    for (int s = 0; s < STATIONS; s++)
        if (fclose(out[s])) return perror("save"), 1;
    printf("%ld records\n", records);
}
