/* Counts the different words of documents, in one table that is cleared where it was used. */
#include <stdio.h>
#include <stdlib.h>

enum { DOCUMENTS = 50, WORDS = 12000, SLOTS = 10 << 20 };

/* How many different words a document has; a slot of the table stands for a word. */
static int different(unsigned document, int *table, unsigned *used) {
    int number = 0;
    for (int n = 0; n < WORDS; n++) {
        unsigned word = (document * 977 + n * n % 9973u) * 2654435761u % SLOTS;
        if (table[word]++ == 0) used[number++] = word;
    }
    for (int n = 0; n < number; n++) table[used[n]] = 0;
    return number;
}

int main(void) {
    long sum = 0;
    static unsigned used[WORDS];
    int *table = calloc(SLOTS, sizeof *table);
    if (!table) return 1;
    for (unsigned document = 0; document < DOCUMENTS; document++) {
        sum += different(document, table, used);
    }
    printf("%ld words\n", sum);
    free(table);
    return 0;
}
