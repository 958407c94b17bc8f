"""Do what log readers get wrong: odd file names, renames, shared positions, append mode, pipes, sockets, signals, threads, exec.

Usage: odd_files.py FOLDER. Makes FOLDER and works in it; ends as `cat`. Every step's totals are in TRUTH, which tests compare.
"""

import os
import signal
import socket
import sys
import threading
import time

NAMES = [
    b"a b",
    b'q"uote',
    b"c) = 3 <0.1>",
    b"nl\nx",
    "日本語".encode(),
    b"<script>alert(1)<script>",
    b"bad\xff\xfe",
    b"x, y",
    b"tail-",
    b"back\\slash",
    b"<unfinished ...>",
]
TEXT = b'hello "world") = 3 <0.000001>\n' * 3


def file_calls(name):
    """One file: 90 bytes written, position moved, renamed and deleted while open; 106 bytes written in 5 calls, 11 read in 2."""
    fd = os.open(name, os.O_CREAT | os.O_RDWR | os.O_TRUNC)
    os.write(fd, TEXT)
    os.lseek(fd, 5, os.SEEK_SET)
    os.read(fd, 7)
    os.pread(fd, 4, 2)
    os.pwrite(fd, b"zz", 1)
    os.rename(name, name + b".new")
    os.write(fd, b"more")
    copy = os.dup(fd)
    os.write(copy, b"abc")
    os.close(copy)
    os.unlink(name + b".new")
    os.write(fd, b"deleted")
    os.close(fd)


def append_calls():
    """One file in append mode shared with a child: 10 + 10 + 5 + 6 bytes."""
    fd = os.open("app", os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_TRUNC)
    os.write(fd, b"1" * 10)
    os.write(fd, b"2" * 10)
    pid = os.fork()
    if pid == 0:
        os.write(fd, b"child")
        os._exit(3)
    os.waitpid(pid, 0)
    os.write(fd, b"parent")
    os.close(fd)


def pipe_calls():
    """A pipe, a socket pair, ten writes that fail, and a read that a signal interrupts and a thread ends."""
    reader, writer = os.pipe()
    os.write(writer, b"xyz")
    os.read(reader, 3)
    left, right = socket.socketpair()
    left.send(b"hi")
    right.recv(10)
    for _ in range(10):
        try:
            os.write(999, b"x")
        except OSError:
            pass
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.siginterrupt(signal.SIGALRM, False)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    thread = threading.Thread(target=lambda: (time.sleep(0.2), os.write(writer, b"q")))
    thread.start()
    os.read(reader, 1)
    thread.join()


def copy_calls():
    """sendfile of 20 bytes, a vector of 14 bytes, a seek to the end."""
    null = os.open("/dev/null", os.O_WRONLY)
    os.sendfile(null, os.open("app", os.O_RDONLY), 0, 20)
    os.writev(null, [b"a" * 5, b"iov_len=9"])
    os.lseek(os.open("app", os.O_RDONLY), 0, os.SEEK_END)


def main():
    """Run every step, kill a child, and become cat."""
    os.makedirs(sys.argv[1], exist_ok=True)
    os.chdir(sys.argv[1])
    for name in NAMES:
        file_calls(name)
    append_calls()
    pipe_calls()
    copy_calls()
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    os.execv("/bin/cat", ["cat", "app"])


if __name__ == "__main__":
    main()
