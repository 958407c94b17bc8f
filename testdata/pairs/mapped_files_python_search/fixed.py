"""Counts a byte in a large file, read in blocks."""

import sys

count = 0
with open(sys.argv[1], "rb", buffering=0) as file:
    while block := file.read(1 << 20):
        count += block.count(b"\x0a")
print(count, "lines")
