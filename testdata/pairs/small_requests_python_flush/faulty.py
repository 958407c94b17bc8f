"""Writes the steps of a small simulation; flushes each line, to be able to watch the file with tail -f."""

import sys

x, y = 1.0, 0.0
with open(sys.argv[1], "w") as out:
    for step in range(6000):
        x, y = x - 0.01 * y, y + 0.01 * x
        print(step, round(x, 6), round(y, 6), sep=",", file=out, flush=True)
print("6000 steps")
