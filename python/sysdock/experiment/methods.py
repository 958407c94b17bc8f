"""Output of a run's own profiler: number and time of calls of its methods, and locations of samples."""

from __future__ import annotations

import csv
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

_COLUMNS = ("method", "calls", "time_ns", "samples", "samples_within")


@dataclass(frozen=True)
class Method:
    """A row of `experiment_methods` without its run. None: the profiler does not know it."""

    method: str
    calls: int | None
    time_ns: int | None
    samples: int | None
    samples_within: int | None

    def values(self) -> tuple[Any, ...]:
        """The values in the order of the columns."""
        return astuple(self)


def read_methods(file: Path) -> tuple[Method, ...]:
    """The rows of a CSV file that a run left. ValueError: it is none; OSError: it cannot be read."""
    with open(file, newline="", encoding="utf-8") as opened:
        try:
            rows = list(csv.reader(opened, strict=True))
        except csv.Error as error:
            raise ValueError(str(error)) from None
    if not rows or tuple(rows[0]) != _COLUMNS:
        raise ValueError(f"its first line is not {','.join(_COLUMNS)}")
    return tuple(_method(number, row) for number, row in enumerate(rows[1:], 2))


def _method(line: int, row: list[str]) -> Method:
    numbers = row[1:]
    if len(row) != len(_COLUMNS) or not row[0] or not all(_is_count(text) for text in numbers):
        raise ValueError(f"line {line} has not a name and four counts, each of which may be empty")
    return Method(row[0], *(int(text) if text else None for text in numbers))


def _is_count(text: str) -> bool:
    """Whether it has at most 18 digits, so that it fits into 64 bits."""
    return text == "" or (text.isascii() and text.isdecimal() and len(text) <= 18)
