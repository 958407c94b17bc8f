"""Numbers for human eyes: three significant digits and a unit."""

from __future__ import annotations

import datetime
import math

_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "μs"), (1.0, "ns"))
_SIZES = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"))


def duration(ns: float | None) -> str:
    """Nanoseconds as time: `1.23 s`, `45.6 ms`; minutes and hours from two minutes on."""
    if ns is None:
        return "unknown"
    seconds = ns / 1e9
    if abs(seconds) >= 120:
        minutes, rest = divmod(round(seconds), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
    for size, unit in _TIMES:
        if abs(ns) >= size:
            return f"{digits(ns / size)} {unit}"
    return "0 ns" if ns == 0 else f"{digits(ns)} ns"


def size(count: float | None) -> str:
    """Bytes with a binary unit from 10,000 on; below, sizes of requests are best known exactly."""
    if count is None:
        return "unknown"
    if abs(count) < 10_000:
        return f"{count:,.1f}".removesuffix(".0") + " B"
    unit_size, unit = next(step for step in _SIZES if abs(count) >= step[0])
    return f"{digits(count / unit_size)} {unit}"


def digits(value: float) -> str:
    """Three significant digits, but all digits before the point."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


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


def percent(part: float, whole: float) -> str:
    """A share, rounded so that less than all never reads 100 %."""
    if whole <= 0:
        return "0 %"
    share = 100 * part / whole
    if part < whole and share > 99.9:
        return "99.9 %"
    return f"{share:.3g} %"


def moment(ns: int) -> str:
    """A time stamp in UTC, to the second."""
    stamp = datetime.datetime.fromtimestamp(ns / 1e9, datetime.UTC)
    return stamp.strftime("%Y-%m-%d %H:%M:%S UTC")
