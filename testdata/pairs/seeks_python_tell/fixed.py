"""Builds an index of a log: where each line begins."""

import sys

index = {}
place = 0
with open(sys.argv[1], "rb", buffering=65536) as log:
    for line in log:
        index[line.split(b",")[1]] = place
        place += len(line)
print(len(index), "keys, sum", sum(index.values()))
