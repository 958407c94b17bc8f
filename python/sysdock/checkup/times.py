"""Reads times as people and tools print them, exactly."""

from __future__ import annotations

import re
from fractions import Fraction

UNITS = {
    "ns": Fraction(1, 1_000_000_000),
    "us": Fraction(1, 1_000_000),
    "µs": Fraction(1, 1_000_000),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "sec": Fraction(1),
    "seconds": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
}
# 1,204,940 is a number with separators. 0,76 is one of another locale, and which it is must not be guessed.
_NUMBER = re.compile(r"((?:[1-9]\d{0,2}(?:,\d{3})+|\d+)(?:\.\d+)?)\s*([a-zµ]*)")
_CLOCK = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)")
# bash prints the decimal sign of the locale.
_PARTS = re.compile(r"(?:(\d+)d)?\s*(?:(\d+)h)?\s*(?:(\d+)m)?\s*(\d+(?:[.,]\d+)?)s")
EXAMPLES = "write 0.76, 26:27.30, 1:02:03, 2-03:04:05, 320 ms or 0m0.76s"
_LONGEST = 64


def seconds(text: str, unit: str = "s") -> Fraction:
    """The time in seconds; `unit` is that of a number without one. ValueError: it is no time."""
    text = text.strip()
    if len(text) <= _LONGEST and (text.isascii() or text.endswith("µs")):
        if (found := _NUMBER.fullmatch(text)) and (found[2] or unit) in UNITS:
            number = _exact(0, found[1].replace(",", ""))
            unit = found[2] or unit
            return number if unit == "s" else number * UNITS[unit]
        if found := _CLOCK.fullmatch(text):
            return _sum(found[1], found[2], found[3], found[4])
        if found := _PARTS.fullmatch(text):
            return _sum(found[1], found[2], found[3], found[4].replace(",", "."))
    raise ValueError(f"`{text[:_LONGEST]}` is not a time")


def _sum(days: str | None, hours: str | None, minutes: str | None, rest: str) -> Fraction:
    return _exact(((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes or 0)) * 60, rest)


def _exact(whole: int, rest: str) -> Fraction:
    """The sum of a number and one with a decimal point; sums of Fractions take ten times as long."""
    before, _, behind = rest.partition(".")
    whole += int(before)
    scale = 10 ** len(behind)
    return Fraction(whole * scale + int(behind), scale) if behind else Fraction(whole)
