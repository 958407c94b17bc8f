"""Asks the kernel where a file lies (FIEMAP), and counts its pieces as `filefrag` does."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from sysdock.errors import UserError

_FS_IOC_FIEMAP = 0xC020660B
# struct fiemap, and struct fiemap_extent after it (linux/fiemap.h).
_HEAD, _EXTENT = struct.Struct("=QQIIII"), struct.Struct("=QQQQQIIII")
_SYNC = 1
_LAST = 1
_AT_ONCE = 512

# Place in the file, on the device, and length [B].
Extent = tuple[int, int, int]


def extents(file: int, at_once: int = _AT_ONCE) -> Iterator[Extent]:
    """Extents of an open file, which is written back before; a UserError if the file system does not report
    them.
    """
    begin = 0
    while True:
        head = _HEAD.pack(begin, (1 << 64) - 1 - begin, _SYNC, 0, at_once, 0)
        answer = bytearray(head + bytes(at_once * _EXTENT.size))
        try:
            fcntl.ioctl(file, _FS_IOC_FIEMAP, answer)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.ENOTTY):
                raise
            fact = "this file system does not report where files are stored (FIEMAP)"
            raise UserError(fact, "use one of ext4, xfs, btrfs, or --mode interleave") from None
        found = _HEAD.unpack_from(answer)[3]
        for number in range(found):
            logical, physical, length, _, _, flags, *_ = _EXTENT.unpack_from(
                answer, _HEAD.size + number * _EXTENT.size
            )
            yield logical, physical, length
            begin = logical + length
            if flags & _LAST:
                return
        if found == 0:
            return


def fragments(path: Path) -> int:
    """Number of fragments of a file: an extent continues the last one if it is as far from it as in the
    file.
    """
    file = os.open(path, os.O_RDONLY)
    try:
        count, last = 0, None
        for logical, physical, length in extents(file):
            if last is None or physical not in (last[1] + last[2], last[1] + logical - last[0]):
                count += 1
            last = logical, physical, length
        return count
    finally:
        os.close(file)
