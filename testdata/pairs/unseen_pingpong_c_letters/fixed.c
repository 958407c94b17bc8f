/* Has letters converted by a filter process, 3,000 at a time. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LETTERS = 45000, AT_ONCE = 3000 };

int main(void) {
    char letter[AT_ONCE];
    int there[2], back[2], status;
    long sum = 0;
    if (pipe(there) || pipe(back)) return 1;
    if (fork() == 0) {
        close(there[1]);
        for (ssize_t got; (got = read(there[0], letter, AT_ONCE)) > 0;) {
            for (int n = 0; n < got; n++) letter[n] ^= 0x20;
            if (write(back[1], letter, got) != got) _exit(1);
        }
        _exit(0);
    }
    for (int n = 0; n < LETTERS; n += AT_ONCE) {
        for (int k = 0; k < AT_ONCE; k++) letter[k] = 'a' + (n + k) % 26;
        if (write(there[1], letter, AT_ONCE) != AT_ONCE || read(back[0], letter, AT_ONCE) != AT_ONCE) return 1;
        for (int k = 0; k < AT_ONCE; k++) sum += letter[k];
    }
    close(there[1]);
    wait(&status);
    printf("sum %ld\n", sum);
    return status;
}
