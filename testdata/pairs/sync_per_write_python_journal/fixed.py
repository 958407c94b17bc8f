"""Imports 500 payments into a journal, all or none."""

import os
import sys

with open(sys.argv[1], "w", buffering=65536) as journal:
    for number in range(500):
        journal.write(f"{number} {number * 37 % 1000}.{number % 100:02} EUR\n")
    journal.flush()
    os.fsync(journal.fileno())
print("500 payments")
