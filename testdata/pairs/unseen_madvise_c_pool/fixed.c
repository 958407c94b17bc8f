/* Serves requests from a pool of memory, which is kept until the last. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { REQUESTS = 6000, SIZE = 128 << 10 };

int main(void) {
    long sum = 0;
    unsigned char *pool = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pool == MAP_FAILED) return 1;
    for (int n = 0; n < REQUESTS; n++) {
        memset(pool, n, SIZE);
        sum += pool[n % SIZE];
    }
    if (madvise(pool, SIZE, MADV_DONTNEED)) return 1;
    printf("sum %ld\n", sum);
    return 0;
}
