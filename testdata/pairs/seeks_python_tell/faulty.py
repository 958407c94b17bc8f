"""Builds an index of a log: where each line begins. tell() is the obvious way to ask."""

import sys

index = {}
with open(sys.argv[1], "rb") as log:
    while True:
        place = log.tell()
        line = log.readline()
        if not line:
            break
        index[line.split(b",")[1]] = place
print(len(index), "keys, sum", sum(index.values()))
