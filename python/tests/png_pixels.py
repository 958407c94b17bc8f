"""Reads pixels back from PNG files."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable


def pixels(png: bytes) -> tuple[int, int, Callable[[int, int], tuple[int, int, int]]]:
    """Width, height, and a function that gives a pixel of a picture with four bytes each."""
    width, height, depth, kind = struct.unpack(">IIBB", png[16:26])
    assert (depth, kind) == (8, 6)
    place, packed = 8, b""
    while place < len(png):
        length, name = struct.unpack(">I4s", png[place : place + 8])
        packed += png[place + 8 : place + 8 + length] if name == b"IDAT" else b""
        place += 12 + length
    raw = zlib.decompress(packed)
    rows, before = [], bytes(width * 4)
    for at in range(height):
        start = at * (width * 4 + 1)
        before = _unfiltered(raw[start], bytearray(raw[start + 1 : start + 1 + width * 4]), before)
        rows.append(before)
    return width, height, lambda x, y: tuple(rows[y][4 * x : 4 * x + 3])


def _unfiltered(kind: int, row: bytearray, above: bytes) -> bytes:
    """A row as it is: each byte was stored as its difference from what its neighbours let expect."""
    match kind:
        case 1:
            for at in range(4, len(row)):
                row[at] = (row[at] + row[at - 4]) & 255
        case 2:
            return bytes((here + over) & 255 for here, over in zip(row, above, strict=True))
        case 3:
            for at, over in enumerate(above):
                row[at] = (row[at] + ((row[at - 4] if at >= 4 else 0) + over) // 2) & 255
        case 4:
            for at, over in enumerate(above):
                left, corner = (row[at - 4], above[at - 4]) if at >= 4 else (0, 0)
                by_left, by_above, by_corner = (
                    abs(over - corner),
                    abs(left - corner),
                    abs(left + over - 2 * corner),
                )
                if by_left <= by_above and by_left <= by_corner:
                    over = left
                elif by_corner < by_above:
                    over = corner
                row[at] = (row[at] + over) & 255
    return bytes(row)
