"""Three workers compute blocks and write them to a file each; the files are joined at the end."""

import os
import shutil
import sys


def work(worker: int) -> None:
    out = os.open(f"{sys.argv[1]}.{worker}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for number in range(150):
        os.write(out, bytes([(worker + number) % 256]) * 16384)
    os.close(out)


children = []
for worker in range(3):
    child = os.fork()
    if child == 0:
        work(worker)
        os._exit(0)
    children.append(child)
states = [os.waitpid(child, 0)[1] for child in children]
with open(sys.argv[1], "wb") as out:
    for worker in range(3):
        with open(f"{sys.argv[1]}.{worker}", "rb") as part:
            shutil.copyfileobj(part, out, 1 << 20)
        os.unlink(f"{sys.argv[1]}.{worker}")
print(os.path.getsize(sys.argv[1]), "bytes, states", states)
