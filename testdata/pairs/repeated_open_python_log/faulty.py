"""Looks for long Collatz chains. log() opens the file each time, so that nothing is lost in a crash."""

import os
import sys


def log(length: int, line: str) -> None:
    out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    if length > 170:
        os.write(out, line.encode())
    os.close(out)


longest = 0
for start in range(1, 4001):
    n, length = start, 1
    while n != 1:
        n, length = 3 * n + 1 if n % 2 else n // 2, length + 1
    longest = max(longest, length)
    log(length, f"start {start} length {length} longest {longest}\n")
print("longest", longest)
