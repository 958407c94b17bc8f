"""Writes process accounting files after the structs of linux/acct.h, for what the kernel here does not write."""

from __future__ import annotations

import struct
from pathlib import Path

# flag version tty exitcode uid gid pid ppid began real user system mem io rw minflt majflt swaps comm
V3 = struct.Struct("BBHIIIIIIfHHHHHHHH16s")
# flag version uid gid tty began user system real mem io rw minflt majflt swaps ahz exitcode comm hi lo uid gid
V2 = struct.Struct("BBHHHIHHHHHHHHHHI17sBHII")


def comp(value: int) -> int:
    """A number as a comp_t, rounded down."""
    exponent = 0
    while value > 0x1FFF:
        value >>= 3
        exponent += 1
    return exponent << 13 | value


def comp2(value: int) -> int:
    """A number as a comp2_t, rounded down: 20 bits of it without the leading 1, and how far it was shifted."""
    exponent = max(value.bit_length() - 20, 0) + (value >= 1 << 19)
    return exponent << 19 | (value >> max(exponent - 1, 0)) & 0x7FFFF


def process(
    comm: str, real: float, user: int, *, system: int = 0, pid: int = 1, ppid: int = 0, began: int = 1_700_000_000,
    order: str = "<",
) -> bytes:  # fmt: skip
    """A record of version 3; times in ticks of 1/100 s."""
    version = 3 | (0x80 if order == ">" else 0)
    counters = (comp(user), comp(system), 0, 0, 0, 0, 0, 0)
    packed = struct.Struct(order + V3.format)
    return packed.pack(0, version, 0, 0, 0, 0, pid, ppid, began, real, *counters, comm.encode())


def old_process(comm: str, real: int, user: int, ahz: int = 100, version: int = 2) -> bytes:
    """A record of `struct acct`; only version 2 has the real time as comp2_t too."""
    packed = struct.Struct("<" + V2.format)
    exact = comp2(real) if version == 2 else 0
    times = (comp(user), 0, comp(min(real, 0x1FFF << 21)), 0, 0, 0, 0, 0, 0, ahz)
    return packed.pack(
        0, version, 0, 0, 0, 1_700_000_000, *times, 0, comm.encode(), exact >> 16, exact & 0xFFFF, 0, 0
    )


def write(path: Path, records: list[bytes]) -> Path:
    """The file."""
    path.write_bytes(b"".join(records))
    return path
