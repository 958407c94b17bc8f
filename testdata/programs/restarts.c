/* Calls that signals interrupt. Usage: restarts CASE, one of:
 *   restart   a read that goes on behind the handler (SA_RESTART)
 *   twice     the same, interrupted twice
 *   eintr     a read that gives EINTR, and is tried again by the program
 *   stop      a nanosleep that is stopped and goes on (restart_syscall)
 *   same      a handler that waits for any child inside of a wait for any child
 *   other     a handler that reaps another child inside of a wait for one
 */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void pause_ms(long ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void nothing(int number) { (void)number; }

static void reap(int number) {
    int saved = errno, status;
    (void)number;
    while (waitpid(-1, &status, WNOHANG) > 0) {}
    errno = saved;
}

static void handle(int number, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(number, &action, NULL);
}

/* Read a byte that comes after 200 ms; signals come after 50 ms and, for `signals` 2, after 100 ms. */
static int read_late(int flags, int signals) {
    int ends[2];
    char byte;
    handle(SIGALRM, nothing, flags);
    if (pipe(ends)) return 2;
    if (fork() == 0) {
        for (int i = 0; i < signals; i++) {
            pause_ms(50);
            kill(getppid(), SIGALRM);
        }
        pause_ms(200 - 50 * signals);
        _exit(write(ends[1], "x", 1) != 1);
    }
    long got;
    do {
        got = read(ends[0], &byte, 1);
    } while (got < 0 && errno == EINTR);
    wait(NULL);
    return got != 1;
}

static int sleep_stopped(void) {
    if (fork() == 0) {
        pause_ms(50);
        kill(getppid(), SIGSTOP);
        pause_ms(50);
        kill(getppid(), SIGCONT);
        _exit(0);
    }
    pause_ms(200);
    wait(NULL);
    return 0;
}

/* The child says SIGCHLD and lives on: the handler finds nothing, and the wait goes on. */
static int wait_same(void) {
    int status;
    handle(SIGCHLD, reap, SA_RESTART);
    pid_t child = fork();
    if (child == 0) {
        pause_ms(50);
        kill(getppid(), SIGCHLD);
        pause_ms(100);
        _exit(3);
    }
    return waitpid(-1, &status, 0) != child;
}

static int wait_other(void) {
    int status;
    handle(SIGCHLD, reap, SA_RESTART);
    pid_t late = fork();
    if (late == 0) {
        pause_ms(200);
        _exit(3);
    }
    if (fork() == 0) {
        pause_ms(50);
        _exit(4);
    }
    return waitpid(late, &status, 0) != late;
}

int main(int count, char **arguments) {
    const char *name = count > 1 ? arguments[1] : "";
    if (strcmp(name, "restart") == 0) return read_late(SA_RESTART, 1);
    if (strcmp(name, "twice") == 0) return read_late(SA_RESTART, 2);
    if (strcmp(name, "eintr") == 0) return read_late(0, 1);
    if (strcmp(name, "stop") == 0) return sleep_stopped();
    if (strcmp(name, "same") == 0) return wait_same();
    if (strcmp(name, "other") == 0) return wait_other();
    return 2;
}
