"""Asks a calculator for answers, while a thread keeps the statistics fresh; threads share everything."""

import os
import socket
import threading

here, there = socket.socketpair()
if os.fork() == 0:
    # The calculator: answers at once.
    here.close()
    while question := there.recv(8):
        there.sendall(b"%d" % (int(question) ** 2))
    os._exit(0)
there.close()
over = threading.Event()


def refresh():
    """Statistics that nobody waits for."""
    means = [0.0] * 100
    while not over.is_set():
        for n in range(10000):
            means[n % 100] += (n - means[n % 100]) / 50


helper = threading.Thread(target=refresh)
helper.start()
total = 0
for n in range(90):
    here.sendall(b"%d" % n)
    total += int(here.recv(16))
over.set()
helper.join()
here.close()
os.wait()
print("total", total)
