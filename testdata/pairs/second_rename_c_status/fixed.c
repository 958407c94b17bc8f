/* Reports how far it is, for a monitor, after each thousand records. */
#include <stdio.h>
#include <unistd.h>

enum { RECORDS = 6000 };

static int report(long record, long sum) {
    FILE *status = fopen("status.new", "w");
    if (!status) return -1;
    fprintf(status, "record %ld of %d, sum %ld\n", record, RECORDS, sum);
    fclose(status);
    return rename("status.new", "status");
}

int main(int count, char **words) {
    long sum = 0;
    if (count < 2 || chdir(words[1])) return 1;
    for (long record = 1; record <= RECORDS; record++) {
        for (long n = 0; n < 1000; n++) sum = (sum * 31 + record + n) % 1000003;
        if (record % 1000 == 0 && report(record, sum)) return 1;
    }
    printf("sum %ld\n", sum);
    return 0;
}
