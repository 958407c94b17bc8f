/* Four workers append their results to one file; a lock keeps the blocks whole. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 4, BLOCKS = 120, BLOCK = 16384 };

static int work(const char *path, int worker) {
    char block[BLOCK];
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET}, none = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    int out = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (out < 0) return 1;
    for (int n = 0; n < BLOCKS; n++) {
        memset(block, worker + n, BLOCK);
        if (fcntl(out, F_SETLKW, &all) || write(out, block, BLOCK) != BLOCK || fcntl(out, F_SETLK, &none)) return 1;
    }
    return close(out) != 0;
}

int main(int count, char **words) {
    int status, bad = 0;
    for (int worker = 0; worker < WORKERS; worker++)
        if (fork() == 0) _exit(work(words[count - 1], worker));
    while (wait(&status) > 0) bad |= status;
    printf("%d blocks\n", WORKERS * BLOCKS);
    return bad != 0;
}
