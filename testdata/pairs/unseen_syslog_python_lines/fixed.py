"""Computes, and logs each step. Lines are sent many at a time."""

import os
import socket
import sys

ours, collectors = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
if os.fork() == 0:
    # The collector of the log.
    ours.close()
    lines = 0
    while block := collectors.recv(65536):
        lines += block.count(b"\n")
    print(lines, "lines")
    sys.stdout.flush()
    os._exit(0)
collectors.close()
log = ours.makefile("w", buffering=1 << 18)
check = 0
for number in range(100000):
    check = check * 31 % 65521 + number
    log.write(f"step {number}: {check}\n")
log.close()
ours.close()
os.wait()
