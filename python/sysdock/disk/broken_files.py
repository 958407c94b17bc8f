"""Makes files in many pieces, in a number that is known beforehand: to measure what fragmentation costs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sysdock.errors import UserError


@dataclass(frozen=True)
class Plan:
    """`files` files of `size` bytes, in pieces of `piece` bytes; mode classic writes `at_once` by turns."""

    files: int
    size: int
    piece: int
    at_once: int

    @property
    def pieces(self) -> int:
        """Pieces of each file."""
        return -(-self.size // self.piece)


def interleave(folder: Path, plan: Plan) -> int:
    """Every file gets a piece by turns, allocated at once: the number of fragments is exact. Returns it."""
    with _opened(folder, plan.files) as files:
        for number in range(plan.pieces):
            for file in files:
                os.posix_fallocate(
                    file, number * plan.piece, min(plan.piece, plan.size - number * plan.piece)
                )
        _write(files, plan)
    return plan.files * plan.pieces if plan.files > 1 else 1


def comb(folder: Path, plan: Plan) -> int:
    """Fills the file system with small files, removes every other, and writes the files into the holes."""
    teeth = folder / "teeth"
    teeth.mkdir()
    number = 0
    try:
        while True:
            with open(teeth / str(number), "wb", buffering=0) as tooth:
                os.posix_fallocate(tooth.fileno(), 0, plan.piece)
            number += 1
    except OSError:
        (teeth / str(number)).unlink(missing_ok=True)
    for other in range(0, number, 2):
        (teeth / str(other)).unlink()
    os.sync()
    if number // 2 * plan.piece < plan.files * plan.size:
        raise UserError(
            f"the holes hold {number // 2 * plan.piece:,} bytes, the files {plan.files * plan.size:,}",
            "take fewer or smaller files, or a larger file system",
        )
    with _opened(folder, plan.files) as files:
        _write(files, plan)
    return plan.files * plan.pieces


def classic(folder: Path, plan: Plan) -> None:
    """Many writers append by turns, as in 2005. Where space is allocated late, no number can be foretold."""
    with _opened(folder, plan.files) as files:
        for first in range(0, plan.files, plan.at_once):
            _write(files[first : first + plan.at_once], plan)


MODES: dict[str, Callable[[Path, Plan], int | None]] = {
    "interleave": interleave,
    "comb": comb,
    "classic": classic,
}


@contextmanager
def _opened(folder: Path, files: int) -> Iterator[list[int]]:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
    opened: list[int] = []
    try:
        opened.extend(os.open(folder / f"part{number:04}", flags, 0o644) for number in range(files))
        yield opened
        for file in opened:
            os.fsync(file)
    finally:
        for file in opened:
            os.close(file)


def _write(files: list[int], plan: Plan) -> None:
    """Bytes that no file system can pack, a piece to each file by turns."""
    for number in range(plan.pieces):
        data = os.urandom(min(plan.piece, plan.size - number * plan.piece))
        for file in files:
            os.pwrite(file, data, number * plan.piece)
