"""Serves requests on a connection of this machine, and sends them: request_server.py REQUESTS.

Each 20th request takes 15 ms, and each reply comes in two parts. Prints how long each request took, as its client saw it [ns].
"""

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


listener = socket.create_server(("127.0.0.1", 0))
server = threading.Thread(target=serve, args=(listener,))
server.start()
client = socket.create_connection(listener.getsockname())
client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for _ in range(REQUESTS):
    begin_ns = time.monotonic_ns()
    client.sendall(b"request no. ")
    client.sendall(b"together")
    reply = b""
    while len(reply) < 8:
        reply += client.recv(4096)
    print(time.monotonic_ns() - begin_ns)
server.join()
