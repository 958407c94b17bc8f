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
    for at in range(len(row)):
        left = row[at - 4] if at >= 4 else 0
        corner = above[at - 4] if at >= 4 else 0
        guess = left + above[at] - corner
        nearest = min((left, above[at], corner), key=lambda value: abs(guess - value))
        row[at] = (row[at] + (0, left, above[at], (left + above[at]) // 2, nearest)[kind]) & 255
    return bytes(row)
