"""Units on axes, and names short enough for a place next to a bar.

A linear axis shows numbers divided to a handy unit (ms, MiB), because ticks stand at round decimal numbers. A
logarithmic axis keeps the base unit, and its labels carry the unit.
"""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass
from typing import Any

from sysdock import text
from sysdock.sentences import fact, say

_STEPS = {
    "ns": tuple((name, float(size)) for size, name in text.TIMES),
    "s": tuple((name, size / 1e9) for size, name in text.TIMES),
    "B": tuple((name, float(size)) for size, name in text.SIZES),
    "B/s": tuple((f"{name}/s", float(size)) for size, name in text.SIZES),
}


LOG_SCALE = fact("chart/log_scale")


@dataclass(frozen=True)
class Axis:
    """The axis of a column: divide by `divisor`, title `title`, Vega axis properties `axis`."""

    divisor: float
    title: str
    axis: dict[str, Any] | None
    scale: dict[str, Any]


def axis_of(
    words: str, unit: str | None, extent: tuple[float, float], scale: str = "linear", lang: str = "en"
) -> Axis:
    """The axis for `words` and `unit`; `extent` is the smallest and the largest value."""
    if scale == "log":
        axis = _log_axis(unit, extent)
        title = f"{words} {say(LOG_SCALE, lang)}"
        return Axis(1.0, title, axis, {"type": "log", "base": 2 if unit == "B" else 10})
    shown, divisor = unit, 1.0
    for name, size in _STEPS.get(unit or "", ()) if extent[1] else ():
        shown, divisor = name, size
        if extent[1] >= size:
            break
    title = f"{words} [{shown}]" if shown else words
    return Axis(divisor, title, None, {"type": "linear", "zero": True})


def _log_axis(unit: str | None, extent: tuple[float, float]) -> dict[str, Any]:
    """Ticks and labels of a logarithmic axis. The expression holds our units, nothing else."""
    low, high = max(extent[0], 1.0), max(extent[1], 1.0)
    wide = high / low > 1000
    if unit == "B":
        ticks = [float(1 << power) for power in range(0, 62, 2 if wide else 1)]
    else:
        ticks = [lead * 10.0**power for power in range(18) for lead in ((1,) if wide else (1, 2, 5))]
    axis = {"values": [tick for tick in ticks if low / 10 <= tick <= high * 10], "labelOverlap": True}
    steps = _STEPS.get(unit or "")
    if not steps or unit == "s":
        return {**axis, "format": "~s"}
    branches = "".join(
        f"datum.value >= {size:.0f} ? format(datum.value / {size:.0f}, '.3~g') + ' {name}' : "
        for name, size in steps
    )
    return {**axis, "labelExpr": f"{branches}format(datum.value, '.3~g')"}


def class_axis(unit: str | None, low: float, high: float) -> dict[str, Any]:
    """The axis of power-of-two classes, located at exponents of two from `low` to `high`, with 0 at -1.

    Sizes are labelled by powers of two: a class by its upper end, in whose middle the label stands. Times are
    labelled by powers of ten where they are, between the classes.
    """
    if unit == "ns":
        powers = range(math.ceil(low * math.log10(2) - 1e-9), math.floor(high * math.log10(2) + 1e-9) + 1)
        ticks = [(math.log2(10) * power, _power_of_ten(power)) for power in powers if power >= 0]
        if low < -1:
            ticks.insert(0, (-1.5, "0"))
    else:
        names = ("", " Ki", " Mi", " Gi", " Ti", " Pi", " Ei")
        places = range(math.ceil(low), math.floor(high) + 1)
        ticks = [(place, f"{1 << place % 10}{names[place // 10]}" if place >= 0 else "0") for place in places]
    branches = "".join(f"datum.value < {place + 0.01:.2f} ? '{label}' : " for place, label in ticks)
    values = [round(place, 4) for place, _ in ticks]
    # Vega halves a list of ticks that is longer than their wanted number.
    return {
        "values": values,
        "tickCount": len(values),
        "grid": False,
        "labelOverlap": True,
        "labelExpr": f"{branches}''",
    }


def _power_of_ten(power: int) -> str:
    """10 to the `power` ns, in the largest unit that leaves a whole number."""
    size, name = next((size, name) for size, name in text.TIMES if 10**power >= size)
    return f"{10**power // size:,} {name}"


def labels(names: list[str], width: int = 40) -> list[str]:
    """Short forms of `names` for an axis, all different: the end of a path says more than its beginning."""
    taken: set[str] = set()
    short = []
    for name in names:
        label = first = shorten(name, width)
        number = 2
        while label in taken:
            label = f"{first} ({number})"
            number += 1
        taken.add(label)
        short.append(label)
    return short


def shorten(name: str, width: int) -> str:
    """About `width` columns of `name`, control characters made visible; wide characters count double."""
    visible = "".join(
        "\N{MIDDLE DOT}" if unicodedata.category(char) in ("Cc", "Cf") else char for char in name
    )
    if text.width(visible) <= width:
        return visible
    head = text.head(visible, width // 3)
    tail = text.head(visible[::-1], width - width // 3 - 1)[::-1]
    return f"{head}…{tail}"
