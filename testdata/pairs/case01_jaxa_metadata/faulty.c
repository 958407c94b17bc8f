/* Writes the state of a flow after each step. A layer below the solver is careful: before each write it checks that the
 * file is there, that it is what it was, and that there is room; afterwards it closes it, so that all is safe. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { STEPS = 700, STATE = 16384 };

static int put(const char *path, const char *state, off_t at) {
    struct stat before, after;
    struct statvfs room;
    if (at && stat(path, &before)) return -1;
    int file = open(path, O_WRONLY | O_CREAT, 0644);
    if (file < 0 || fstat(file, &after) || (at && before.st_ino != after.st_ino)) return -1;
    if (statvfs(path, &room) || room.f_bavail * room.f_bsize < STATE) return -1;
    if (pwrite(file, state, STATE, at) != STATE) return -1;
    return close(file);
}

int main(int count, char **words) {
    char state[STATE];
    for (int step = 0; step < STEPS; step++) {
        memset(state, 'a' + step % 26, STATE);
        if (put(words[count - 1], state, (off_t)step * STATE)) return perror(words[count - 1]), 1;
    }
    printf("%d steps\n", STEPS);
}
