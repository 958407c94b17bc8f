/* Works on images, in one buffer. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { IMAGES = 1500, SIZE = 1 << 20 };

static unsigned char *buffer(void) {
    return mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(void) {
    long sum = 0;
    unsigned char *image = buffer();
    if (image == MAP_FAILED) return 1;
    for (int n = 0; n < IMAGES; n++) {
        memset(image, n, SIZE);
        sum += image[n] + image[SIZE - 1];
    }
    printf("sum %ld\n", sum);
    return 0;
}
