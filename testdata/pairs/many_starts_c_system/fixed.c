/* Moves processed files to another folder. */
#include <stdio.h>

int main(int count, char **words) {
    char from[4096], to[4096];
    int moved = 0;
    for (int n = 0; n < 80; n++) {
        snprintf(from, sizeof from, "%s/in/f%05d.dat", words[count - 1], n);
        snprintf(to, sizeof to, "%s/done/f%05d.dat", words[count - 1], n);
        if (rename(from, to) == 0) moved++;
    }
    printf("%d moved\n", moved);
}
