"""Two programs that meet in a folder, as two hosts do in a shared one.

Usage: meet.py FOLDER create|look COUNT. `create` makes the files `made-0` ... (O_EXCL) one after another, and
waits for the answer to each, `seen-0` ...; `look` asks for `made-0` ... until it is there, and then answers.
"""

import os
import sys
import time


def create(name):
    os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def wait_for(name):
    """Open a file as soon as it is there."""
    while True:
        try:
            os.close(os.open(name, os.O_RDONLY))
            return
        except FileNotFoundError:
            time.sleep(0.002)


def main():
    os.chdir(sys.argv[1])
    for number in range(int(sys.argv[3])):
        if sys.argv[2] == "create":
            time.sleep(0.01)
            create(f"made-{number}")
            wait_for(f"seen-{number}")
        else:
            wait_for(f"made-{number}")
            create(f"seen-{number}")


if __name__ == "__main__":
    main()
