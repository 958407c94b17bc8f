"""Serves requests on a connection, and sends them: request_server.py REQUESTS.

Each 20th request takes 15 ms, and each reply comes in two parts. Prints how long each request took, as its
client saw it [ns].
"""

import os
import socket
import sys
import threading
import time

REQUESTS = int(sys.argv[1])


def serve(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    for number in range(REQUESTS):
        request = b""
        while len(request) < 20:
            request += connection.recv(4096)
        if number % 20 == 19:
            time.sleep(0.015)
        connection.sendall(b"head")
        connection.sendall(b"body")


# Without a network, which a guest may not have.
listener = socket.socket(socket.AF_UNIX)
listener.bind(f"\0sysdock-{os.getpid()}")
listener.listen()
# Where the client fails, nobody waits for the server.
server = threading.Thread(target=serve, args=(listener,), daemon=True)
server.start()
client = socket.socket(socket.AF_UNIX)
client.connect(listener.getsockname())
for _ in range(REQUESTS):
    begin_ns = time.monotonic_ns()
    client.sendall(b"request no. ")
    client.sendall(b"together")
    reply = b""
    while len(reply) < 8:
        reply += client.recv(4096)
    print(time.monotonic_ns() - begin_ns)
server.join()
