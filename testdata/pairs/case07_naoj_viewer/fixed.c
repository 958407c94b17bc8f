/* Makes a small view of a large image: the mean of each 4096 pixels, read 1 MiB at a time. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { TILE = 4096 };

int main(int count, char **words) {
    static uint8_t image[1 << 20];
    uint64_t view = 0;
    int file = open(words[count - 1], O_RDONLY);
    if (file < 0) return perror(words[count - 1]), 1;
    for (ssize_t got; (got = read(file, image, sizeof image)) > 0;)
        for (ssize_t tile = 0; tile < got; tile += TILE) {
            uint64_t sum = 0;
            for (int i = 0; i < TILE; i++) sum += image[tile + i];
            view = view * 31 + sum / TILE;
        }
    printf("view %lx\n", view);
}
