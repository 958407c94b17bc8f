// Says that it runs, waits for a line, executes some million instructions, and says that it is done.
#include <unistd.h>

int main(void) {
    char line;
    write(1, "runs\n", 5);
    while (read(0, &line, 1) < 0)
        ;
    for (volatile int i = 0; i < 3000000; i++)
        ;
    write(1, "done\n", 5);
    return 0;
}
