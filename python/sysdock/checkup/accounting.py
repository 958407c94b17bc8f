"""Reads process accounting files as the kernel writes them (`accton`; Debian's package acct).

Format: `struct acct_v3` and `struct acct` of linux/acct.h, 64 bytes a record, in either byte order. A comp_t
has a fraction of 13 bits and an exponent of 3 bits to the base 8; times are in clock ticks, 100 a second but
in the old formats, which state their own number.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

from sysdock.checkup import OK
from sysdock.checkup.ratio import JobTimes
from sysdock.checkup.statement import Name, Part
from sysdock.checkup.text_file import open_packed
from sysdock.errors import UserError
from sysdock.sentences import Words, fact

RECORD_BYTES = 64
TICKS_PER_S = 100
_BIG_ENDIAN = 0x80
# A hundred years: no process takes longer, but a damaged file says so.
LONGEST_TICKS = 100 * 366 * 86400 * TICKS_PER_S
_BLOCK = RECORD_BYTES * 4096
# version, pid, ppid, began, real ticks, user ticks (comp_t), system ticks (comp_t), program
_V3 = "xB14xIIIfHH12x16s"
# version, began, user, system, real (comp_t), ticks per second, program, real time (comp2_t): high, low
_V2 = "xB6xIHHH12xH4x17sBH8x"
# comp_t to its number.
COMP = [(value & 0x1FFF) << (3 * (value >> 13)) for value in range(1 << 16)]

Row = tuple[int, int, int, float, int, int, bytes]


@dataclass(frozen=True)
class Process:
    """One record: times in ticks of 1/100 s, `began` in seconds since the epoch. Old formats have pid 0."""

    pid: int
    ppid: int
    began: int
    real: float
    user: int
    system: int
    comm: str

    @property
    def ended(self) -> float:
        """When it ended, as exactly as the file states."""
        return self.began + self.real / TICKS_PER_S


def is_accounting(head: bytes) -> bool:
    """Whether a file that begins so is a process accounting file: no text has such a second byte."""
    return len(head) >= 2 and head[1] & ~_BIG_ENDIAN in (0, 1, 2, 3) and not head.startswith(b"\x1f\x8b")


def refuse_time(ticks: float, path: Path) -> None:
    """Raises a UserError if no process takes this long, for example one that ended before it began."""
    if not 0 <= ticks < LONGEST_TICKS:
        fact = f"a process took {ticks} ticks"
        raise UserError(fact, "the file is damaged, or is not an accounting file", str(path))


def rows(path: Path) -> Iterator[Row]:
    """pid, ppid, began, real ticks, user ticks, system ticks and program of each record, in order of ends."""
    place = str(path)
    number = 0
    with open_packed(path) as file:
        version: int | None = None
        while block := _read(file, place):
            if version is None:
                version = _version(block, place)
                order = ">" if version & _BIG_ENDIAN else "<"
                unpack = struct.Struct(order + (_V3 if version & ~_BIG_ENDIAN == 3 else _V2)).iter_unpack
                translate = _v3 if version & ~_BIG_ENDIAN == 3 else _v2
            whole = len(block) - len(block) % RECORD_BYTES
            for fields in unpack(block[:whole]):
                number += 1
                if fields[0] != version:
                    fact = f"record {number} has version {fields[0]} instead of {version}"
                    raise UserError(fact, "the file is damaged, or several were joined", place)
                yield translate(fields)
            if whole < len(block):
                fact = f"{len(block) - whole} bytes after record {number} are not a complete record"
                raise UserError(fact, "the file was cut off while it was copied; copy it again", place)
    if version is None:
        raise UserError("an empty accounting file", "turn accounting on: `accton on` (package acct)", place)


def find_process(path: Path, wanted: str | None) -> JobTimes:
    """The last process with that program name or pid, with all that it started."""
    found: Process | None = None
    same = 0
    for row in rows(path):
        process = _process(row)
        if wanted is None or wanted in (process.comm, str(process.pid)):
            found, same = process, same + 1
    if found is None:
        hint = "program names have at most 15 bytes; `dump-acct FILE` lists them"
        raise UserError(f"no process `{wanted}` in it", hint, str(path))
    refuse_time(found.real, path)
    if wanted is None and same > 1:
        raise UserError(
            f"the file holds {same:,} processes", "say which with --job NAME or --job PID", str(path)
        )
    family = _family(path, found) if found.pid else [found]
    sentence: tuple[Words, ...] = (fact("checkup/total"),)
    if same > 1:
        sentence = (*sentence, fact("checkup/have_name_last"))
    if not found.pid:
        sentence = (*sentence, _NO_CHILDREN)
    values = {"processes": len(family), "program": Name("word", found.comm), "same": same}
    return JobTimes(
        user=Fraction(sum(process.user for process in family)) / TICKS_PER_S,
        system=Fraction(sum(process.system for process in family)) / TICKS_PER_S,
        real=Fraction(found.real) / TICKS_PER_S,
        name=found.comm,
        source=fact("checkup/process_accounting"),
        remark=Part("processes", OK, sentence, None, values),
    )


_NO_CHILDREN = fact("checkup/version_format_does_not")


def _family(path: Path, head: Process) -> list[Process]:
    """The process and its descendants: parents end after their children, or their children lose them.

    A pid is used again, so only what began within the life of its parent counts; times are to the second.
    """
    children: dict[int, list[Process]] = {}
    for process in map(_process, rows(path)):
        if process.began + 1 >= head.began and process.ended <= head.ended + 2:
            children.setdefault(process.ppid, []).append(process)
    family = [head]
    for parent in family:
        family += [
            process
            for process in children.pop(parent.pid, ())
            if process.began + 1 >= parent.began and process.ended <= parent.ended + 2 and process is not head
        ]
    return family


def _process(row: Row) -> Process:
    return Process(*row[:6], comm=row[6].split(b"\0")[0].decode("utf-8", "replace"))


def _v3(fields: tuple[Any, ...]) -> Row:
    _, pid, ppid, began, real, user, system, comm = fields
    return pid, ppid, began, real, COMP[user], COMP[system], comm


def _v2(fields: tuple[Any, ...]) -> Row:
    _, began, user, system, real, hertz, comm, high, low = fields
    scale = TICKS_PER_S / (hertz or TICKS_PER_S)
    # The kernel of version 2 writes the real time a second time, with more digits and a longer reach.
    ticks = _comp2(high << 16 | low) if high or low else COMP[real]
    return 0, 0, began, ticks * scale, COMP[user] * scale, COMP[system] * scale, comm


def _comp2(value: int) -> int:
    """A comp2_t: a fraction of 20 bits whose leading 1 is not stored, an exponent of 5 bits to the base 2."""
    fraction, exponent = value & 0x7FFFF, value >> 19
    return (fraction | 0x80000) << (exponent - 1) if exponent else fraction


def _read(file: IO[bytes], place: str) -> bytes:
    try:
        return file.read(_BLOCK)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"cannot be read: {str(error).lower()}", place=place) from None


def _version(block: bytes, place: str) -> int:
    if not is_accounting(block):
        hint = "give the file that `accton` names, as /var/log/account/pacct, not the output of a tool"
        raise UserError("not a process accounting file", hint, place)
    return block[1]
