"""Numbers with their units, and what places in a sentence look like.

`{took}` is a value with the unit of its entry; `{files:file}` the number with that noun (`1 file`, `2 files`;
`{n:index|indices}` names its plural); `{files?is|are}` only the word that agrees with the number;
`{share:.0f}` the number in that format of Python. A value of unit `word`, or in a place `{cause:ja}` that
names the language, was chosen by sysdock itself and is translated; a recorded `text` never is.
"""

from __future__ import annotations

import math
import re

from sysdock.text import TIMES, human_bytes, human_ns, truncated

# A value, then perhaps `:` or `?` and the words that agree with it, or a format.
PLACE = re.compile(r"\{([a-z0-9_]+)(?:([:?])([^{}]+))?\}")
FORMAT = re.compile(r"[+]?,?(\.\d+)?[dfgs]?")
# Kinds of values, which are not written behind them.
_KINDS = {"count", "number", "text", "word", "fact"}
_EXACT_BELOW = 1e15
_THREE_DIGITS = 1000


def names_in(template: str) -> set[str]:
    """The values that a sentence mentions."""
    return {found[1] for found in PLACE.finditer(template)}


def with_unit(value: int | float, unit: str | None) -> str:
    """A number with its unit: `1.2 ms`, `3.00 MiB`, `12 %`, `1,234`."""
    if not math.isfinite(value):
        return str(value)
    if unit == "ns":
        return human_ns(value)
    if unit == "s":
        return human_ns(value * TIMES[0][0])
    if unit == "B":
        return human_bytes(value)
    if unit == "B/s":
        return f"{human_bytes(value)}/s"
    if unit == "ratio":
        return truncated(value)
    if unit == "percent":
        return f"{100 * value:.0f} %"
    if unit == "number":
        return f"{value}" if isinstance(value, int) else f"{value:g}"
    if isinstance(value, int) or (value == int(value) and abs(value) < _EXACT_BELOW):
        number = f"{int(value):,}"
    else:
        number = f"{value:.3g}" if abs(value) < _THREE_DIGITS else f"{value:,.0f}"
    return f"{number} {unit}" if unit and unit not in _KINDS else number
