"""Looks for the longest Collatz chain. log() opens the file each time, so that nothing is lost in a crash."""

import sys


def log(*words: object) -> None:
    with open(sys.argv[1], "a") as out:
        print(*words, file=out)


longest = 0
for start in range(1, 1501):
    n, length = start, 1
    while n != 1:
        n, length = 3 * n + 1 if n % 2 else n // 2, length + 1
    longest = max(longest, length)
    log("start", start, "length", length, "longest", longest)
print("longest", longest)
