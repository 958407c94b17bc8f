/* Asks a solver, which is a process of its own, through files: one can look into them when something goes wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { QUESTIONS = 400 };

static int put(const char *name, int number) {
    FILE *file = fopen("new", "w");
    if (!file) return 1;
    fprintf(file, "%d", number);
    return fclose(file) || rename("new", name);
}

static int take(const char *name) {
    int number = -1;
    FILE *file = fopen(name, "r");
    if (!file || fscanf(file, "%d", &number) != 1) exit(1);
    fclose(file);
    unlink(name);
    return number;
}

static void await(const char *name) {
    struct stat found;
    while (stat(name, &found)) usleep(1000);
}

int main(int count, char **words) {
    int status;
    long sum = 0;
    if (count < 2 || chdir(words[1])) return 1;
    if (fork() == 0) {
        for (int n = 0; n < QUESTIONS; n++) {
            await("question");
            if (put("answer", take("question") * 2)) _exit(1);
        }
        _exit(0);
    }
    for (int n = 0; n < QUESTIONS; n++) {
        if (put("question", n)) return 1;
        await("answer");
        sum += take("answer");
    }
    wait(&status);
    printf("sum %ld\n", sum);
    return status;
}
