"""A process beside the program: started by `setup`, not recorded, and gone when the scratch folder is.

serve.py http FOLDER DELAY_MS          answers GET /NAME after so long with a number made of NAME, and
                                       GET /A,B,C with one for each; as many at a time as ask. The port is in
                                       FOLDER/port.
serve.py flock PATH HELD_MS FREE_MS    holds a lock on a file for so long, lets go for so long, and again
serve.py lockf PATH HELD_MS FREE_MS    the same with a POSIX lock (fcntl)
"""

import fcntl
import http.server
import os
import sys
import threading
import time
import zlib
from pathlib import Path

PATIENCE_S = 300


class Answer(http.server.BaseHTTPRequestHandler):
    """A number for each name, the same each time."""

    protocol_version = "HTTP/1.1"
    # Headers and body leave in one piece.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self):
        time.sleep(delay_s)
        names = self.path.removeprefix("/").split(",")
        body = "".join(f"{zlib.crc32(name.encode()) % 1000}\n" for name in names).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def hold(path, lock, held_s, free_s):
    """Takes the lock and lets it go, in turn."""
    with open(path, "r+b") as file:
        ready.set()
        while True:
            lock(file, fcntl.LOCK_EX)
            time.sleep(held_s)
            lock(file, fcntl.LOCK_UN)
            time.sleep(free_s)


kind, target = sys.argv[1], Path(sys.argv[2])
folder = target if kind == "http" else target.parent
ready = threading.Event()
if kind == "http":
    delay_s = int(sys.argv[3]) / 1000
    http.server.ThreadingHTTPServer.request_queue_size = 128
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    server.daemon_threads = True
    (folder / "port").write_text(f"{server.server_address[1]}\n")
else:
    target.touch()
# The command of the setup ends when the server listens; the server itself has a session of its own.
if os.fork():
    os._exit(0)
os.setsid()
nothing = os.open(os.devnull, os.O_RDWR)
for number in range(3):
    os.dup2(nothing, number)
if kind == "http":
    work = threading.Thread(target=server.serve_forever, daemon=True)
else:
    times = [int(word) / 1000 for word in sys.argv[3:5]]
    lock = fcntl.flock if kind == "flock" else fcntl.lockf
    work = threading.Thread(target=hold, args=(target, lock, *times), daemon=True)
work.start()
end = time.monotonic() + PATIENCE_S
while folder.exists() and time.monotonic() < end:
    time.sleep(0.2)
os._exit(0)
