/* Resamples 22 images on the local disk (the second folder), stacks them, and writes the result to the first. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { IMAGES = 22, SIZE = 786432, PIECE = 16384, STACKED = 16384 };
static unsigned char image[SIZE], stacked[STACKED];

static int save(const char *path, const unsigned char *data, size_t size) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0) return -1;
    for (size_t at = 0; at < size; at += PIECE)
        if (write(file, data + at, PIECE) != PIECE) return -1;
    return close(file);
}

int main(int count, char **words) {
    char path[4096];
    if (count < 3) return 2;
    for (int n = 0; n < IMAGES; n++) {
        for (int i = 0; i < SIZE; i++) image[i] = (i * (n + 3)) >> 4;
        snprintf(path, sizeof path, "%s/resamp%02d.fits", words[2], n);
        if (save(path, image, SIZE)) return perror(path), 1;
        for (int i = 0; i < SIZE; i++) stacked[i % STACKED] += image[i] / IMAGES;
    }
    snprintf(path, sizeof path, "%s/coadd.fits", words[1]);
    if (save(path, stacked, STACKED)) return perror(path), 1;
    printf("%d images\n", IMAGES);
}
