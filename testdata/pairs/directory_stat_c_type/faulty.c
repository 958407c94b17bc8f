/* Counts the data files of a folder. stat() is what the old books show for "is it a file?". */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int main(int count, char **words) {
    char path[8192];
    struct stat about;
    long files = 0;
    DIR *folder = opendir(words[count - 1]);
    if (!folder) return perror(words[count - 1]), 1;
    for (struct dirent *entry; (entry = readdir(folder));) {
        snprintf(path, sizeof path, "%s/%s", words[count - 1], entry->d_name);
        if (stat(path, &about)) return perror(path), 1;
        if (S_ISREG(about.st_mode) && strstr(entry->d_name, ".dat")) files++;
    }
    closedir(folder);
    printf("%ld files\n", files);
}
