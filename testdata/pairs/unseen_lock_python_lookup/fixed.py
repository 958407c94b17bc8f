"""Looks up users with four threads. The lock is held only while the table is changed."""

import sys
import threading
import urllib.request
from pathlib import Path

server = "http://127.0.0.1:" + Path(sys.argv[1]).read_text().strip()
known = {}
lock = threading.Lock()


def look_up(names):
    for name in names:
        with urllib.request.urlopen(f"{server}/{name}") as answer:
            number = int(answer.read())
        with lock:
            known[name] = number


threads = [threading.Thread(target=look_up, args=([f"user{n}" for n in range(k, 12, 4)],)) for k in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(known), "users", sum(known.values()))
