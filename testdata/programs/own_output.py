"""Writes to standard output and error what looks like the end of a call, a number or several lines, with known totals.

Traced without -o, the output stands in the middle of strace's lines. Main thread: 12 writes of 1,164 bytes and a writev of
59; two threads: 3 writes of 9 bytes each; a child: 13 bytes.
"""

import os
import subprocess
import threading

MAIN = (
    b"plain\n",
    b"no newline",
    b"5",
    b"25\n",
    b"a) = 5 (x",
    b"a, b) = 7\n",
    b"several\n\nlines, (here\nand) = 4\n",
    b"--- SIGCHLD {} ---\n+++ exited with 0 +++\n",
    b'write(1, "x", 1) = 1\n',
    b"\n",
    b"z" * 50 + b"\n",
    b"y\n" * 490,
)


def thread(number: int) -> None:
    for _ in range(3):
        os.write(1, b"thread %d\n" % number)


for text in MAIN:
    os.write(1, text)
os.writev(1, [b"vec ", b"tor\n", b"v" * 50 + b"\n"])
threads = [threading.Thread(target=thread, args=(number,)) for number in range(2)]
for one in threads:
    one.start()
for one in threads:
    one.join()
subprocess.run(["/bin/echo", "from a child"], check=False)
