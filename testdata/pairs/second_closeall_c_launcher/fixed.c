/* Starts 100 helpers. None may inherit a connection; one call closes all that are open. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HELPERS = 100, CONNECTIONS = 20000 };

int main(void) {
    // The server may have many connections.
    struct rlimit room = {CONNECTIONS, CONNECTIONS};
    if (setrlimit(RLIMIT_NOFILE, &room)) return 1;
    int good = 0;
    for (int n = 0; n < HELPERS; n++) {
        pid_t child = fork();
        if (child < 0) return 1;
        if (child == 0) {
            close_range(3, ~0U, 0);
            execl("/bin/true", "true", (char *)NULL);
            _exit(127);
        }
        int status;
        if (waitpid(child, &status, 0) == child && status == 0) good++;
    }
    printf("%d helpers ran\n", good);
    return 0;
}
