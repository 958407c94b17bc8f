/* Writes a table of 500 blocks, safe on disk when it is whole. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **words) {
    char block[8192];
    int out = open(words[count - 1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (out < 0) return perror(words[count - 1]), 1;
    for (int n = 0; n < 500; n++) {
        memset(block, n, sizeof block);
        if (write(out, block, sizeof block) != sizeof block) return perror("write"), 1;
    }
    if (fsync(out)) return perror("fsync"), 1;
    close(out);
    puts("500 blocks");
}
