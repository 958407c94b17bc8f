"""Shares jobs among workers. They are counted at the start, and the kernel tells when one ends."""

import os

# The workers wait for the end of a pipe.
end, start = os.pipe()
workers = []
for _ in range(40):
    if (child := os.fork()) == 0:
        os.close(start)
        os.read(end, 1)
        os._exit(0)
    workers.append(child)


def alive():
    """How many workers there are, as /proc says."""
    number = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb", buffering=0) as file:
                number += int(file.read().rpartition(b")")[2].split()[1]) == os.getpid()
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended meanwhile
    return number


total = 0
there = alive()
for job in range(150):
    total += job * there
os.close(start)
for worker in workers:
    os.waitpid(worker, 0)
print("total", total)
