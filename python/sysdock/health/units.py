"""Sizes and times as the command line has them, in the units of `sysdock-native load`."""

from __future__ import annotations

import re

from sysdock.errors import UserError

_SIZES = {
    "": 1,
    "B": 1,
    "k": 1 << 10,
    "K": 1 << 10,
    "KiB": 1 << 10,
    "m": 1 << 20,
    "M": 1 << 20,
    "MiB": 1 << 20,
}
_SIZES |= {"g": 1 << 30, "G": 1 << 30, "GiB": 1 << 30, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9}
_SIZES |= {"t": 1 << 40, "T": 1 << 40, "TiB": 1 << 40, "TB": 10**12}
_TIMES = {"us": 1e3, "ms": 1e6, "s": 1e9, "": 1e9, "m": 6e10, "h": 3.6e12}


def bytes_of(text: str) -> int:
    """A size in bytes: `4K`, `16M`, `1MiB`, `1GB`. UserError where it is none."""
    return round(_parsed(text, _SIZES, "a size: write 4096, 4K, 16M or 1GB"))


def ns_of(text: str) -> int:
    """A time in ns: `500ms`, `5s`, `2m`. UserError where it is none."""
    return round(_parsed(text, _TIMES, "a time: write 500ms, 30s, 5m or 1h"))


def _parsed(text: str, units: dict[str, float] | dict[str, int], form: str) -> float:
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *([A-Za-z]*)", text)
    if not found or found[2] not in units:
        raise UserError(f"`{text}` is not {form}")
    return float(found[1]) * units[found[2]]
