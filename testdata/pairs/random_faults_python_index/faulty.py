"""Adds up records of a mapped file in the order of an index, said to be random: each page is waited for."""

import mmap
import sys

RECORD, LOOKUPS = 512, 12000

with open(sys.argv[1], "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as records:
    records.madvise(mmap.MADV_RANDOM)
    number = len(records) // RECORD
    print(sum(records[(n * 40503 + 7) % number * RECORD] for n in range(LOOKUPS)))
