/* Counts visitors in a mapped file. The map is written back at the end of the day. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 16, ROOMS = PAGES * 4096 / sizeof(long), VISITORS = 5000 };

int main(int count, char **words) {
    int file = count > 1 ? open(words[1], O_RDWR | O_CREAT, 0644) : -1;
    if (file < 0 || ftruncate(file, PAGES * 4096)) return 1;
    long *rooms = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), sum = 0;
    if (rooms == MAP_FAILED) return 1;
    for (long n = 0; n < VISITORS; n++) rooms[n * 7919 % ROOMS] += n;
    if (msync(rooms, PAGES * 4096, MS_SYNC)) return 1;
    for (size_t n = 0; n < ROOMS; n++) sum += rooms[n];
    printf("%ld\n", sum);
    return 0;
}
