/* Four workers write their results to a file each; the parent puts them together. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 4, BLOCKS = 120, BLOCK = 16384 };

static int work(const char *path, int worker) {
    char block[BLOCK];
    int out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (out < 0) return 1;
    for (int n = 0; n < BLOCKS; n++) {
        memset(block, worker + n, BLOCK);
        if (write(out, block, BLOCK) != BLOCK) return 1;
    }
    return close(out) != 0;
}

int main(int count, char **words) {
    static char data[1 << 20];
    char path[WORKERS][4096];
    int status, bad = 0;
    for (int worker = 0; worker < WORKERS; worker++) {
        snprintf(path[worker], sizeof path[worker], "%s.%d", words[count - 1], worker);
        if (fork() == 0) _exit(work(path[worker], worker));
    }
    while (wait(&status) > 0) bad |= status;
    int out = open(words[count - 1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    for (int worker = 0; worker < WORKERS; worker++) {
        int in = open(path[worker], O_RDONLY);
        for (ssize_t got; (got = read(in, data, sizeof data)) > 0;) bad |= write(out, data, got) != got;
        close(in);
        unlink(path[worker]);
    }
    printf("%d blocks\n", WORKERS * BLOCKS);
    return bad | close(out);
}
