"""Three workers compute blocks and append them to one file; a lock keeps the blocks whole."""

import fcntl
import os
import sys


def work(worker: int) -> None:
    out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for number in range(150):
        block = bytes([(worker + number) % 256]) * 16384
        fcntl.flock(out, fcntl.LOCK_EX)
        os.write(out, block)
        fcntl.flock(out, fcntl.LOCK_UN)
    os.close(out)


children = []
for worker in range(3):
    child = os.fork()
    if child == 0:
        work(worker)
        os._exit(0)
    children.append(child)
states = [os.waitpid(child, 0)[1] for child in children]
print(os.path.getsize(sys.argv[1]), "bytes, states", states)
