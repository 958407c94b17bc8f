"""A counter for votes, and five booths that report to it. Who comes while it is busy waits in a queue."""

import socket
import threading
import time

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(64)
votes = []


def count():
    # The register of voters takes a moment to load.
    time.sleep(0.15)
    for _ in range(5):
        booth, _ = listener.accept()
        votes.append(int(booth.recv(16)))
        booth.close()


def report(number):
    with socket.create_connection(listener.getsockname()) as counter:
        counter.sendall(b"%d" % (number * 100 + 7))
        counter.recv(1)


threads = [threading.Thread(target=count)]
threads += [threading.Thread(target=report, args=(number,)) for number in range(5)]
for thread in threads:
    thread.start()
    # Not all booths close at the same moment.
    time.sleep(0.02)
for thread in threads:
    thread.join()
print("votes", sum(votes))
