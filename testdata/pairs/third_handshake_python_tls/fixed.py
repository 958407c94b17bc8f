"""Reports measurements to a service through TLS, all on one connection."""

import os
import socket
import ssl
import sys

KEY, CERTIFICATE = sys.argv[1:]
listener = socket.create_server(("127.0.0.1", 0), backlog=64)
child = os.fork()
if child == 0:
    # The service: answers each line with its square.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, KEY)
    while True:
        caller, _ = listener.accept()
        caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with context.wrap_socket(caller, server_side=True) as connection, connection.makefile("rwb") as lines:
            for line in lines:
                if line == b"end\n":
                    os._exit(0)
                lines.write(b"%d\n" % int(line) ** 2)
                lines.flush()
context = ssl.create_default_context(cafile=CERTIFICATE)


def connect():
    caller = socket.create_connection(listener.getsockname())
    caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return context.wrap_socket(caller, server_hostname="localhost")


total = 0
with connect() as connection:
    for number in range(150):
        connection.sendall(b"%d\n" % number)
        total += int(connection.recv(64))
    connection.sendall(b"end\n")
os.waitpid(child, 0)
print("total", total)
