"""Imports 500 payments into a journal. save() is that of single payments, where each must be safe at once."""

import os
import sys
from typing import TextIO


def save(journal: TextIO, line: str) -> None:
    journal.write(line)
    journal.flush()
    os.fsync(journal.fileno())


with open(sys.argv[1], "w") as journal:
    for number in range(500):
        save(journal, f"{number} {number * 37 % 1000}.{number % 100:02} EUR\n")
print("500 payments")
