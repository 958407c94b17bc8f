/* Writes the tiles of a map. A file for each can be looked at, and copied, alone. */
#include <stdio.h>
#include <string.h>

enum { TILES = 2000, SIZE = 200 };

int main(int count, char **words) {
    char tile[SIZE], name[4096];
    if (count < 2) return 1;
    for (int n = 0; n < TILES; n++) {
        memset(tile, 'a' + n % 26, SIZE);
        snprintf(name, sizeof name, "%s/%05d.tile", words[1], n);
        FILE *file = fopen(name, "w");
        if (!file || fwrite(tile, SIZE, 1, file) != 1 || fclose(file)) return 1;
    }

    printf("%d tiles\n", TILES);
    return 0;
}
