"""Counts the lines of many files."""

import os
import sys

lines = 0
for name in sorted(os.listdir(sys.argv[1])):
    with open(os.path.join(sys.argv[1], name), "rb", buffering=0) as file:
        while block := file.read(65536):
            lines += block.count(b"\n")
print(lines, "lines")
