/* Writes the tiles of a map to one file; tile n begins at n times its size. */
#include <stdio.h>
#include <string.h>

enum { TILES = 2000, SIZE = 200 };

int main(int count, char **words) {
    char tile[SIZE], name[4096];
    if (count < 2) return 1;
    snprintf(name, sizeof name, "%s/map.tiles", words[1]);
    FILE *file = fopen(name, "w");
    if (!file) return 1;
    for (int n = 0; n < TILES; n++) {
        memset(tile, 'a' + n % 26, SIZE);
        if (fwrite(tile, SIZE, 1, file) != 1) return 1;
    }
    if (fclose(file)) return 1;
    printf("%d tiles\n", TILES);
    return 0;
}
