"""Sends a metric after each step. The address is looked up once."""

import socket

collector = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
collector.bind(("127.0.0.1", 0))
port = collector.getsockname()[1]
total = 0
address = socket.getaddrinfo("localhost", port, socket.AF_INET, socket.SOCK_DGRAM)[0][4]
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    for step in range(25000):
        sender.sendto(b"step:%d|c" % step, address)
        total += len(collector.recv(64))
print("received", total)
