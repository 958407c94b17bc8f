"""Numbers in the report: with a unit, rounded for reading."""

from __future__ import annotations

import datetime
import math

from sysdock.text import human_bytes, human_ns

_EXACT_BELOW = 10_000


def duration(ns: float | None) -> str:
    """A time: `1.23 s`, `45.60 ms`; minutes and hours from two minutes on."""
    return "unknown" if ns is None else human_ns(ns)


def size(count: float | None) -> str:
    """Bytes with a binary unit from 10,000 on; below, sizes of requests are best known exactly."""
    if count is None:
        return "unknown"
    if abs(count) < _EXACT_BELOW:
        return f"{count:,.1f}".removesuffix(".0") + " B"
    return human_bytes(count)


def measured(value: float | int | None, unit: str | None) -> str:
    """A number of a column with its unit; an empty text for NULL."""
    if value is None:
        return ""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if unit == "ns":
        return duration(value)
    if unit == "B":
        return size(value)
    if isinstance(value, int):
        return f"{value:,}" if unit is None else f"{value:,} {unit}"
    shown = f"{value:,.6f}".rstrip("0").rstrip(".")
    return f"{shown} {unit}" if unit else shown


def moment(ns: int) -> str:
    """A time stamp in UTC, to the second."""
    stamp = datetime.datetime.fromtimestamp(ns / 1e9, datetime.UTC)
    return stamp.strftime("%Y-%m-%d %H:%M:%S UTC")
