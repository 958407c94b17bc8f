"""Makes files in many pieces, in a number that is known beforehand: to measure what fragmentation costs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_NAME = "part"


@dataclass(frozen=True)
class Plan:
    """`files` files of `size` bytes, in fragments of `piece` bytes; mode classic writes `at_once` in turn."""

    files: int
    size: int
    piece: int
    at_once: int

    @property
    def pieces(self) -> int:
        """Pieces of each file."""
        return -(-self.size // self.piece)


def interleave(folder: Path, plan: Plan) -> int:
    """Allocates a piece of every file in turn. Returns the resulting number of fragments.

    It is exact where free space is in large areas, and a piece is whole blocks: an old file system may
    have to put a piece into several holes, or finds holes for two pieces side by side.
    """
    with opened_files(folder, plan.files) as files:
        for number in range(plan.pieces):
            for file in files:
                os.posix_fallocate(
                    file, number * plan.piece, min(plan.piece, plan.size - number * plan.piece)
                )
        write_in_turns(files, plan)
    return plan.files * plan.pieces if plan.files > 1 else 1


def classic(folder: Path, plan: Plan) -> None:
    """Many writers append by turns, as in 2005. Where space is allocated late, no number can be predicted."""
    with opened_files(folder, plan.files) as files:
        for first in range(0, plan.files, plan.at_once):
            write_in_turns(files[first : first + plan.at_once], plan)


def made_files(folder: Path) -> list[Path]:
    """The files that were made there."""
    return sorted(folder.glob(f"{_NAME}*"))


@contextmanager
def opened_files(folder: Path, files: int) -> Iterator[list[int]]:
    """New files to write; they are on the disk when they are closed."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
    opened: list[int] = []
    try:
        opened.extend(os.open(folder / f"{_NAME}{number:04}", flags, 0o644) for number in range(files))
        yield opened
        for file in opened:
            os.fsync(file)
    finally:
        for file in opened:
            os.close(file)


def write_in_turns(files: list[int], plan: Plan) -> None:
    """Bytes that no file system can pack, a piece to each file by turns."""
    for number in range(plan.pieces):
        data = os.urandom(min(plan.piece, plan.size - number * plan.piece))
        for file in files:
            os.pwrite(file, data, number * plan.piece)
