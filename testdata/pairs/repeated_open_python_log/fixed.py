"""Looks for long Collatz chains, and logs them."""

import sys

longest = 0
with open(sys.argv[1], "a", buffering=65536) as out:
    for start in range(1, 4001):
        n, length = start, 1
        while n != 1:
            n, length = 3 * n + 1 if n % 2 else n // 2, length + 1
        longest = max(longest, length)
        if length > 170:
            print("start", start, "length", length, "longest", longest, file=out)
print("longest", longest)
