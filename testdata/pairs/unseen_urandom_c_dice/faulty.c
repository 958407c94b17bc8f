/* Throws a die. Numbers should be as good as they can be, so they come from the kernel, when they are needed. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { THROWS = 900000 };

int main(void) {
    static unsigned char byte[1];
    long faces[6] = {0};
    int source = open("/dev/urandom", O_RDONLY);
    if (source < 0) return 1;
    for (long n = 0; n < THROWS; n++) {
        if (read(source, byte, 1) != 1) return 1;
        faces[byte[0] % 6]++;
    }
    for (int n = 0; n < 6; n++)
        if (faces[n] < THROWS / 7) return 1;
    printf("%d throws, no face too rare\n", THROWS);
    return close(source);
}
