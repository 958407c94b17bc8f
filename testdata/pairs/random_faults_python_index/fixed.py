"""Adds up records of a mapped file, in the order of an index. The file is read through once before."""

import mmap
import sys

RECORD, LOOKUPS = 512, 12000

with open(sys.argv[1], "rb", buffering=0) as file:
    while file.read(1 << 20):
        pass
    with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as records:
        number = len(records) // RECORD
        print(sum(records[(n * 40503 + 7) % number * RECORD] for n in range(LOOKUPS)))
