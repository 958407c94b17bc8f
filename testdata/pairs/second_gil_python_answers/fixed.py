"""Asks a calculator for answers, while a process of its own keeps the statistics fresh."""

import os
import signal
import socket

here, there = socket.socketpair()
if os.fork() == 0:
    # The calculator: answers at once.
    here.close()
    while question := there.recv(8):
        there.sendall(b"%d" % (int(question) ** 2))
    os._exit(0)
there.close()


def refresh():
    """Statistics that nobody waits for."""
    means = [0.0] * 100
    while True:
        for n in range(10000):
            means[n % 100] += (n - means[n % 100]) / 50


helper = os.fork()
if helper == 0:
    here.close()
    refresh()
total = 0
for n in range(90):
    here.sendall(b"%d" % n)
    total += int(here.recv(16))
os.kill(helper, signal.SIGKILL)
here.close()
os.wait()
os.wait()
print("total", total)
