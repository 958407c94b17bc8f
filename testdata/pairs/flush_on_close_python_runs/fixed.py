"""Sorts more numbers than it wants to hold: sorted runs in local temporary files."""

import array
import heapq
import os
import random
import sys

chance = random.Random(1)
paths = []
for run in range(20):
    numbers = array.array("q", sorted(chance.choices(range(1 << 40), k=30_000)))
    paths.append(os.path.join(sys.argv[2], f"run{run:02}.bin"))
    with open(paths[-1], "wb", buffering=0) as out:
        out.write(numbers)
runs = []
for path in paths:
    with open(path, "rb", buffering=0) as file:
        runs.append(array.array("q", file.read()))
merged = heapq.merge(*(run[::300] for run in runs))
print("every 400th of 300:", list(merged)[::400])
