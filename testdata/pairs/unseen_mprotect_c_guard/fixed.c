/* Books amounts. The table is protected before and after all of it. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { ACCOUNTS = 4096, BOOKINGS = 150000 };

int main(void) {
    size_t size = ACCOUNTS * sizeof(long);
    long *account = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), sum = 0;
    if (account == MAP_FAILED) return 1;
    if (mprotect(account, size, PROT_READ | PROT_WRITE)) return 1;
    for (int n = 0; n < BOOKINGS; n++) {
        account[(n * 7919L) % ACCOUNTS] += n;
    }
    if (mprotect(account, size, PROT_READ)) return 1;
    for (int n = 0; n < ACCOUNTS; n++) sum ^= account[n];
    printf("check %ld\n", sum);
    return 0;
}
