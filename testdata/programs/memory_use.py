"""Has the kernel allocate known numbers of things, and says which: `memory_use.py`; or reads a file as a member of a control group of
version 1, whose limit is smaller, and says what the group counted: `memory_use.py GROUP FILE`; or takes memory there until it is killed:
`memory_use.py GROUP`."""

import json
import mmap
import os
import socket
import sys
from pathlib import Path

FILES, SOCKETS, CHILDREN = 700, 500, 20
PAGES = 3000


def known() -> dict[str, int]:
    for _ in range(FILES):
        os.close(os.open("/dev/null", os.O_RDONLY))
    for _ in range(SOCKETS):
        socket.socket(socket.AF_UNIX).close()
    for _ in range(CHILDREN):
        if child := os.fork():
            os.waitpid(child, 0)
        else:
            os._exit(0)
    memory = mmap.mmap(-1, PAGES * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    for page in range(PAGES):
        memory[page * mmap.PAGESIZE] = 1
    memory.close()
    return {"pid": os.getpid(), "files": FILES, "sockets": SOCKETS, "children": CHILDREN, "pages": PAGES}


def limited(group: Path, file: str) -> dict[str, int]:
    (group / "cgroup.procs").write_text(str(os.getpid()))
    length = 0
    with open(file, "rb", buffering=0) as opened:
        while read := opened.read(1 << 20):
            length += len(read)
    # Times that it was at its limit: each is a try to free some.
    failures = int((group / "memory.failcnt").read_text())
    return {"pid": os.getpid(), "bytes": length, "failures": failures}


def endless(group: Path) -> None:
    print(os.getpid(), flush=True)
    (group / "cgroup.procs").write_text(str(os.getpid()))
    taken = []
    while True:
        taken.append(bytearray(1 << 20))


if len(sys.argv) == 2:
    endless(Path(sys.argv[1]))
print(json.dumps(limited(Path(sys.argv[1]), sys.argv[2]) if len(sys.argv) > 1 else known()))
