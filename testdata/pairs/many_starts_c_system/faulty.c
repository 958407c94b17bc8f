/* Moves processed files to another folder. What mv does is known; that there is a call for it, less. */
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
    char command[8300];
    int moved = 0;
    for (int n = 0; n < 80; n++) {
        snprintf(command, sizeof command, "mv '%.4000s/in/f%05d.dat' '%.4000s/done/'", words[count - 1], n, words[count - 1]);
        if (system(command) == 0) moved++;
    }
    printf("%d moved\n", moved);
}
