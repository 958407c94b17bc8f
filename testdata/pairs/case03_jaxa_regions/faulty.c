/* Works through regions of four files in 25 steps. Each region is read when it is needed and given up afterwards: it was
 * written for a machine that could hold no more. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { STEPS = 25, REGIONS = 32, REGION = 65536 };

int main(int count, char **words) {
    static uint8_t region[REGION];
    uint64_t sum = 0;
    int files[8];
    for (int f = 1; f < count && f < 8; f++)
        if ((files[f] = open(words[f], O_RDONLY)) < 0) return perror(words[f]), 1;
    for (int step = 0; step < STEPS; step++)
        for (int r = 0; r < REGIONS; r++)
            for (int f = 1; f < count; f++) {
                lseek(files[f], (off_t)r * REGION, SEEK_SET);
                if (read(files[f], region, REGION) != REGION) return perror(words[f]), 1;
                for (int i = step; i < REGION; i += STEPS) sum += region[i];
            }
    printf("sum %lu\n", sum);
}
