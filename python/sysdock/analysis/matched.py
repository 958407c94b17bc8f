"""Compares an analysis of two recordings row by row."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sysdock.analysis.session import Session
from sysdock.errors import NotComputed, UserError
from sysdock.library import Analysis, Column

# Process ids differ from run to run: a process is known by its program.
_PROCESS_ID = re.compile(r" \d+$")
Key = tuple[Any, ...]
Numbers = dict[str, Any]


@dataclass(frozen=True)
class Matched:
    """The rows of both recordings, the largest change first.

    `columns`: those that name a row, the change of the first number, and each number in the first and in the
    second recording. A number is NULL where the recording has no such row, or several that do not add up.
    """

    columns: tuple[Column, ...]
    rows: list[tuple[Any, ...]]


def compare_rows(
    a: Session, b: Session, analysis: Analysis, params: Mapping[str, Any] | None = None
) -> Matched:
    """Runs `analysis` on both and matches its rows by the columns that `match:` of its header names.

    UserError: it has no such line, or one of the recordings cannot answer it.
    """
    if not analysis.match:
        comparable = [each.id for each in a.library.analyses() if each.match]
        fact = f"rows of `{analysis.id}` cannot be found again in another recording"
        raise UserError(fact, f"those of these can: {', '.join(comparable)}", "compare")
    numbers = _numbers(analysis)
    of_a, of_b = (_rows(session, analysis, params, numbers) for session in (a, b))
    first = numbers[0].name

    def change(key: Key) -> Any:
        values = [side[key][first] if key in side else None for side in (of_b, of_a)]
        return None if values == [None, None] else (values[0] or 0) - (values[1] or 0)

    rows = [
        (*key, change(key), *(side.get(key, {}).get(n.name) for n in numbers for side in (of_a, of_b)))
        for key in of_a.keys() | of_b.keys()
    ]
    width = len(analysis.match)
    rows.sort(key=lambda row: (-abs(row[width] or 0), [str(value) for value in row[:width]]))
    return Matched(_columns(analysis, numbers), rows)


def _numbers(analysis: Analysis) -> list[Column]:
    """The columns that are compared: sums, times first, then columns with a unit or shares."""
    sums = [column for column in analysis.columns if column.name in analysis.sums]
    sums.sort(key=lambda column: column.unit != "ns")
    others = [
        column
        for column in analysis.columns
        if column not in sums
        and column.name not in analysis.match
        and (column.unit or column.type == "DOUBLE")
        and column.type != "VARCHAR"
    ]
    return [*sums, *others]


def _rows(
    session: Session, analysis: Analysis, params: Mapping[str, Any] | None, numbers: list[Column]
) -> dict[Key, Numbers]:
    """The numbers of each row, by the columns that name it; rows of one name are added up."""
    found: dict[Key, Numbers] = {}
    try:
        rows = session.run(analysis, params).dicts()
    except NotComputed as error:
        raise NotComputed(error.fact, error.hint, str(session.recording.folder)) from None
    for row in rows:
        key = tuple(_name(column, row[column]) for column in analysis.match)
        values = {column.name: row[column.name] for column in numbers}
        found[key] = _added(found[key], values, analysis.sums) if key in found else values
    return found


def _name(column: str, value: Any) -> Any:
    return _PROCESS_ID.sub("", value) if column == "process" and isinstance(value, str) else value


def _added(one: Numbers, other: Numbers, sums: tuple[str, ...]) -> Numbers:
    """Two rows as one: averages, extremes and percentiles of both together are not known."""
    return {
        name: (one[name] or 0) + (other[name] or 0)
        if name in sums and (one[name], other[name]) != (None, None)
        else None
        for name in one
    }


def _columns(analysis: Analysis, numbers: list[Column]) -> tuple[Column, ...]:
    known = {column.name: column for column in analysis.columns}
    names = [known[name] for name in analysis.match]
    first = numbers[0]
    change = Column(
        _side(first, "change"), first.type, first.unit, "How much more it is in the second recording."
    )
    sides = [
        Column(_side(number, side), number.type, number.unit, f"{number.text} In the {word} recording.")
        for number in numbers
        for side, word in (("a", "first"), ("b", "second"))
    ]
    return (*names, change, *sides)


def _side(column: Column, side: str) -> str:
    """The name of a column of one recording: the unit stays at its end."""
    head, unit, _ = column.name.rpartition("_ns") if column.name.endswith("_ns") else (column.name, "", "")
    return f"{head}_{side}{unit}"
