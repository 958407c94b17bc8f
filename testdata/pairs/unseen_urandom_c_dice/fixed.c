/* Throws a die, with numbers of the kernel, of which many are fetched at a time. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { THROWS = 900000 };

int main(void) {
    static unsigned char byte[1 << 16];
    long faces[6] = {0};
    int source = open("/dev/urandom", O_RDONLY);
    if (source < 0) return 1;
    for (long n = 0; n < THROWS; n++) {
        if (n % sizeof byte == 0 && read(source, byte, sizeof byte) != sizeof byte) return 1;
        faces[byte[n % sizeof byte] % 6]++;
    }
    for (int n = 0; n < 6; n++)
        if (faces[n] < THROWS / 7) return 1;
    printf("%d throws, no face too rare\n", THROWS);
    return close(source);
}
