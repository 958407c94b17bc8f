/* Answers requests, each with memory of its own. A page is provided when it is first used. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { REQUESTS = 50, ARENA = 64 << 20 };

int main(void) {
    unsigned long sum = 0;
    for (int request = 0; request < REQUESTS; request++) {
        char *arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (arena == MAP_FAILED) return 1;
        // Hardly any request needs more than a few pages.
        size_t used = 4096 * (1 + (size_t)request % 9);
        memset(arena, request, used);
        for (size_t n = 0; n < used; n += 512) sum += (unsigned char)arena[n];
        munmap(arena, ARENA);
    }
    printf("sum %lu\n", sum);
    return 0;
}
