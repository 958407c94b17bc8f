"""Protocol-buffer messages as bytes: just what a Perfetto trace needs.

Source of the format: the encoding page of the Protocol Buffers documentation. A message is a list of
(field number, value): int is a varint, str and bytes are length-delimited, float is a 64-bit number.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

_VARINT, _DOUBLE, _BYTES = 0, 1, 2

Value = int | float | str | bytes
Field = tuple[int, Value]


def message(fields: Iterable[Field]) -> bytes:
    """The bytes of a message."""
    out = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            # A negative number is sent as its two's complement of 64 bits.
            out += varint(number << 3 | _VARINT) + varint(value & 0xFFFF_FFFF_FFFF_FFFF)
        elif isinstance(value, float):
            out += varint(number << 3 | _DOUBLE) + struct.pack("<d", value)
        else:
            content = value.encode("utf-8", "replace") if isinstance(value, str) else value
            out += varint(number << 3 | _BYTES) + varint(len(content)) + content
    return bytes(out)


def varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the top bit says that more follow."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
