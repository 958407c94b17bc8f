/* Sorts records into a file for each of four stations. save() opens what it needs and leaves nothing behind. */
#include <stdio.h>

enum { RECORD = 4096, BLOCK = 64 };

static int save(const char *folder, int station, const unsigned char *record) {
    char path[4096];
    snprintf(path, sizeof path, "%s/station%d.bin", folder, station);
    FILE *out = fopen(path, "ab");
    if (!out) return -1;
    fwrite(record, RECORD, 1, out);
    return fclose(out);
}

int main(int count, char **words) {
    static unsigned char block[BLOCK][RECORD];
    long records = 0;
    FILE *in = fopen(words[1], "rb");
    if (!in) return perror(words[1]), 1;
    for (size_t got; (got = fread(block, RECORD, BLOCK, in));)
        for (size_t i = 0; i < got; i++, records++)
            if (save(words[count - 1], (block[i][0] + records) % 4, block[i])) return perror("save"), 1;
    printf("%ld records\n", records);
}
