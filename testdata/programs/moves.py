"""Moves bytes in ways that take no buffer, or several: maps, sendfile, copy_file_range, splice, vectors.

Usage: moves.py FOLDER. `from` has 8,000 bytes, which are copied to `to`. Comments say where each call begins.
"""

import mmap
import os
import sys


def map_file(fd):
    """8,000 bytes shared, and those from 4,096 on private."""
    shared = mmap.mmap(fd, 8000, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    private = mmap.mmap(fd, 3904, mmap.MAP_PRIVATE, mmap.PROT_READ, offset=4096)
    assert shared[:4] == private[:4]
    shared.close()
    private.close()


def copy(source, target):
    os.sendfile(target, source, None, 1000)  # from 0 to 0
    os.sendfile(target, source, 5000, 100)  # from 5000 to 1000; the position of `source` stays
    os.copy_file_range(source, target, 500)  # from 1000 to 1100
    os.copy_file_range(source, target, 50, offset_src=20)  # from 20 to 1600
    os.copy_file_range(source, target, 60, offset_src=30, offset_dst=7000)  # from 30 to 7000
    os.read(source, 10)  # at 1500
    os.write(target, b"0123456789")  # at 1650


def splice(source, target):
    """Through a pipe, which has no position."""
    reader, writer = os.pipe()
    os.splice(source, writer, 300)  # from 1510
    os.splice(reader, target, 300)  # to 1660
    os.splice(source, writer, 40, offset_src=6000)  # from 6000
    os.splice(reader, target, 40, offset_dst=3000)  # to 3000
    os.read(source, 1)  # at 1810
    os.write(target, b"1")  # at 1960


def vectors(source, target):
    os.readv(source, [bytearray(7), bytearray(4)])  # at 1811
    os.preadv(source, [bytearray(5), bytearray(3)], 40, os.RWF_HIPRI)  # at 40
    os.preadv(source, [bytearray(6)], -1, os.RWF_HIPRI)  # at 1822
    os.pwritev(target, [b"ab", b"cdef"], 50, os.RWF_SYNC)  # at 50
    os.pwritev(target, [b"ab", b"cde"], -1, os.RWF_SYNC)  # at 1961
    os.read(source, 2)  # at 1828
    os.writev(target, [b"abc", b"de"])  # at 1966


def main():
    os.chdir(sys.argv[1])
    with open("from", "wb") as file:
        file.write(b"abcdefgh" * 1000)
    source = os.open("from", os.O_RDWR)
    target = os.open("to", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    map_file(source)
    copy(source, target)
    splice(source, target)
    vectors(source, target)


if __name__ == "__main__":
    main()
