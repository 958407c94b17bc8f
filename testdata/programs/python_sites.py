"""Writes from functions of Python in every form. Each notes by itself, from sys._getframe, where it stands: its number in the books is the
offset that it writes at.

Usage: python_sites.py FOLDER
"""

import asyncio
import contextlib
import functools
import itertools
import json
import os
import sys
import threading

FOLDER = sys.argv[1]
FD = os.open(os.path.join(FOLDER, "calls"), os.O_RDWR | os.O_CREAT, 0o600)
TIMES = 100
numbers = itertools.count()
books = {}


def number(frame):
    """The number of the write that this frame is about to make."""
    mine = next(numbers)
    chain = []
    while frame:
        chain.append((frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    books[mine] = chain
    return mine


def write():
    os.pwrite(FD, b"x", number(sys._getframe()))


def two_lines():
    os.pwrite(FD, b"x", number(sys._getframe()))
    write()
    os.pwrite(FD, b"x", number(sys._getframe()))


def recursion(depth):
    if depth == 0:
        return write()
    if depth % 2:
        return recursion(depth - 1)
    return recursion(depth - 1)


class Writer:
    def method(self):
        write()

    @classmethod
    def of_class(cls):
        write()

    @property
    def attribute(self):
        return write()

    def __len__(self):
        write()
        return 1

    def __del__(self):
        write()


def outer():
    def inner():
        write()

    inner()
    return [write() for _ in range(2)]


def generator():
    for _ in range(2):
        write()
        yield os.pwrite(FD, b"x", number(sys._getframe()))


def over_generators():
    yield from generator()


@contextlib.contextmanager
def context():
    write()
    yield
    write()


def decorator(function):
    @functools.wraps(function)
    def wrapped(*arguments):
        return function(*arguments)

    return wrapped


@decorator
def decorated():
    write()


@functools.lru_cache
def cached(_):
    write()


def key(value):
    write()
    return value


async def awaited():
    write()
    await asyncio.sleep(0)
    os.pwrite(FD, b"x", number(sys._getframe()))


async def coroutine():
    await awaited()
    await asyncio.gather(awaited(), awaited())


def handler():
    try:
        raise ValueError
    except ValueError:
        write()
    finally:
        write()


def all_forms(turn):
    write()
    two_lines()
    recursion(turn % 20)
    writer = Writer()
    writer.method()
    Writer.of_class()
    writer.attribute
    len(writer)
    del writer
    outer()
    list(generator())
    sum(over_generators())
    with context():
        write()
    decorated()
    cached(turn)
    sorted([2, 1], key=key)
    list(map(lambda _: write(), range(2)))
    functools.reduce(lambda *_: write(), range(3))
    handler()
    exec(compile("write()\nwrite()", f"<made {turn}>", "exec"))


def made_anew(turn):
    """Code that takes the place of other code in memory."""
    source = "\n" * (turn % 7) + f"def functión_{turn % 5}():\n    os.pwrite(FD, b'x', number(sys._getframe()))\nfunctión_{turn % 5}()\n"
    exec(compile(source, "/日本/módulo.py" if turn % 3 else "/latin/módulo.py", "exec"), globals().copy())


def in_thread():
    for turn in range(TIMES // 4):
        write()
        recursion(turn % 5)


def in_child():
    pid = os.fork()
    if pid == 0:
        books.clear()
        for _ in range(20):
            write()
        keep("books-of-child")
        os._exit(0)
    os.waitpid(pid, 0)
    for _ in range(20):
        next(numbers)


def keep(name):
    with open(os.path.join(FOLDER, name), "w") as file:
        json.dump(books, file)


def main():
    for turn in range(TIMES):
        all_forms(turn)
        made_anew(turn)
    asyncio.run(coroutine())
    in_child()
    threads = [threading.Thread(target=in_thread) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recursion(200)
    keep("books")


main()
