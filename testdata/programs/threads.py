"""Eight threads write 40 times each to their own file below FOLDER; one of them ends as `true` by an exec that replaces the others.

Usage: threads.py FOLDER
"""

import os
import sys
import threading


def write(folder, number, finished):
    fd = os.open(f"{folder}/t{number}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    for size in range(40):
        os.write(fd, b"x" * size)
    os.close(fd)
    finished.release()


def replace(finished):
    for _ in range(8):
        finished.acquire()
    os.execv("/bin/true", ["true"])


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    finished = threading.Semaphore(0)
    threads = [threading.Thread(target=write, args=(sys.argv[1], n, finished)) for n in range(8)]
    threads.append(threading.Thread(target=replace, args=(finished,)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
