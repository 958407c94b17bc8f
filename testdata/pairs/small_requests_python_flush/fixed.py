"""Writes the steps of a small simulation."""

import sys

x, y = 1.0, 0.0
with open(sys.argv[1], "w", buffering=65536) as out:
    for step in range(6000):
        x, y = x - 0.01 * y, y + 0.01 * x
        print(step, round(x, 6), round(y, 6), sep=",", file=out)
print("6000 steps")
