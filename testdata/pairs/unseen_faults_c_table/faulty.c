/* Counts the different words of documents. calloc gives each document a table that is empty, however large. */
#include <stdio.h>
#include <stdlib.h>

enum { DOCUMENTS = 50, WORDS = 12000, SLOTS = 10 << 20 };

/* How many different words a document has; a slot of the table stands for a word. */
static int different(unsigned document, int *table) {
    int number = 0;
    for (int n = 0; n < WORDS; n++) {
        unsigned word = (document * 977 + n * n % 9973u) * 2654435761u % SLOTS;
        number += table[word]++ == 0;
    }
    return number;
}

int main(void) {
    long sum = 0;
    for (unsigned document = 0; document < DOCUMENTS; document++) {
        int *table = calloc(SLOTS, sizeof *table);
        if (!table) return 1;
        sum += different(document, table);
        free(table);
    }
    printf("%ld words\n", sum);
    return 0;
}
