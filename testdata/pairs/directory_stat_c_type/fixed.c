/* Counts the data files of a folder. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <string.h>

int main(int count, char **words) {
    long files = 0;
    DIR *folder = opendir(words[count - 1]);
    if (!folder) return perror(words[count - 1]), 1;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_type == DT_REG && strstr(entry->d_name, ".dat")) files++;
    closedir(folder);
    printf("%ld files\n", files);
}
