"""BPF programs in the executable, which are packed by zstd: changed in place, as a test of kernels that refuse one needs it.

Format: RFC 8878, Zstandard frames, blocks and skippable frames.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

import pyarrow as pa

MAGIC = b"\x28\xb5\x2f\xfd"
SKIPPABLE = 0x184D2A50
LINE = re.compile(rb"(?<=\0)[\t -~]{16,};(?=\0)")


def frame_end(content: bytes, start: int) -> int:
    """Where the frame ends that begins there."""
    flags = content[start + 4]
    single = flags >> 5 & 1
    at = start + 5 + (1 - single) + (0, 1, 2, 4)[flags & 3] + (single, 2, 4, 8)[flags >> 6]
    last = False
    while not last:
        block = int.from_bytes(content[at : at + 3], "little")
        last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
        at += 3 + (1 if kind == 1 else size)
    return at + (4 if flags >> 2 & 1 else 0)


def objects(program: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Begin and end of each packed ELF object, and the object."""
    start = program.find(MAGIC)
    while start >= 0:
        try:
            end = frame_end(program, start)
            plain = pa.CompressedInputStream(pa.BufferReader(program[start:end]), "zstd").read()
        except (OSError, IndexError):
            plain = b""
        if plain.startswith(b"\x7fELF"):
            yield start, end, plain
        start = program.find(MAGIC, start + 1)


def replaced(program: bytes, old: bytes, new: bytes) -> bytes:
    """The executable with this text in its BPF programs in place of the other one."""
    for start, end, plain in list(objects(program)):
        if old not in plain:
            continue
        # The new frame may not be longer: lines of the source, which the verifier prints, are blanked out.
        plain = LINE.sub(lambda line: b"x" * len(line[0]), plain.replace(old, new))
        packed = pa.Codec("zstd", compression_level=19).compress(plain, asbytes=True)
        room = end - start - len(packed) - 8
        assert room >= 0
        packed += struct.pack("<II", SKIPPABLE, room) + bytes(room)
        program = program[:start] + packed + program[end:]
    return program
