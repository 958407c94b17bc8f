/* Writes the state of a flow after each step, to a file that is checked at the start and stays open. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { STEPS = 700, STATE = 16384 };

int main(int count, char **words) {
    char state[STATE];
    struct statvfs room;
    int file = open(words[count - 1], O_WRONLY | O_CREAT, 0644);
    if (file < 0 || fstatvfs(file, &room) || room.f_bavail * room.f_bsize < (long)STEPS * STATE) return perror("open"), 1;
    for (int step = 0; step < STEPS; step++) {
        memset(state, 'a' + step % 26, STATE);
        if (write(file, state, STATE) != STATE) return perror("write"), 1;
    }
    if (close(file)) return perror("close"), 1;
    printf("%d steps\n", STEPS);
}
