"""Writes rows as an aligned table, CSV or JSON.

Used for what is small or already in Python; large results of analyses go through `sysdock.analysis.copy`.
"""

from __future__ import annotations

import decimal
import json
import math
from collections.abc import Iterable, Sequence
from typing import IO, Any

from sysdock.library import Column
from sysdock.sentences import facts_from_json, say
from sysdock.text import (
    harmless_json,
    human_bytes,
    human_ns,
    pad,
    printable,
    shorten,
    spreadsheet_text,
    width,
)

_GAP = "  "
_LEAST_WIDTH = 24
# Language of facts in tables, whose columns have the names of SQL, in English.
_LANG = "en"


def heading(column: Column) -> str:
    """The head of a column: times and sizes carry their unit with each value, others name it here."""
    if column.unit in (None, "B", "fact"):
        return printable(column.name)
    name = printable(column.name).removesuffix(f"_{column.unit}")
    return name if column.unit == "ns" else f"{name} [{column.unit}]"


def cell(value: Any, column: Column) -> str:
    """A value as it appears in a table."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        if column.unit == "ns":
            return human_ns(value)
        if column.unit == "B":
            return human_bytes(value)
        if isinstance(value, int):
            # Ids such as pids are not counts: no separators in them.
            return str(value) if column.name.endswith("id") else f"{value:,}"
        return f"{value:.9g}"
    return printable(say(facts_from_json(value), _LANG) if column.unit == "fact" else str(value))


def table_lines(
    columns: Sequence[Column], rows: Iterable[Sequence[Any]], room: int | None = None
) -> list[str]:
    """Lines of an aligned table; the widest texts are shortened so that it fits into `room` columns."""
    body = [[cell(value, column) for value, column in zip(row, columns, strict=True)] for row in rows]
    head = [heading(column) for column in columns]
    right = [column.type not in ("VARCHAR", "BOOLEAN") for column in columns]
    widths = [max([width(head[i]), *(width(row[i]) for row in body)]) for i in range(len(columns))]
    if room:
        _fit(widths, right, room)
    lines = []
    for row in [head, *body]:
        cells = (
            pad(shorten(text, widths[i], middle=not right[i]), widths[i], right[i])
            for i, text in enumerate(row)
        )
        lines.append(_GAP.join(cells).rstrip())
    return lines


def row_lines(columns: Sequence[Column], row: Sequence[Any]) -> list[str]:
    """One row as lines of name and value, for rows that are too wide for a table."""
    heads = [heading(column) for column in columns]
    room = max(width(head) for head in heads)
    cells = [cell(value, column) for value, column in zip(row, columns, strict=True)]
    return [pad(head, room, False) + _GAP + text for head, text in zip(heads, cells, strict=True)]


def _fit(widths: list[int], right: list[bool], room: int) -> None:
    """Takes columns from the widest text until the table fits or nothing is left to take."""
    texts = [i for i, is_right in enumerate(right) if not is_right]
    while sum(widths) + len(_GAP) * (len(widths) - 1) > room:
        widest = max(texts, key=lambda i: widths[i], default=None)
        if widest is None or widths[widest] <= _LEAST_WIDTH:
            return
        over = sum(widths) + len(_GAP) * (len(widths) - 1) - room
        widths[widest] = max(_LEAST_WIDTH, widths[widest] - over)


def write_csv(
    out: IO[str], names: Sequence[str], rows: Iterable[Sequence[Any]], *, raw: bool = False
) -> None:
    """CSV as the engine writes it: NULL is empty, the empty string is `""`.

    Texts are made harmless for terminals and spreadsheets, unless they are wanted `raw`.
    """
    out.write(",".join(_csv_cell(name, raw) for name in names) + "\n")
    for row in rows:
        out.write(",".join(_csv_cell(value, raw) for value in row) + "\n")


def _csv_cell(value: Any, raw: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    is_number = isinstance(value, (int, float, decimal.Decimal))
    text = str(value) if raw or is_number else spreadsheet_text(str(value))
    if not text or any(char in text for char in ',"\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text


def json_text(value: Any, indent: int | None = None) -> str:
    """A value as JSON; NaN and infinities, which JSON lacks, are null."""
    text = json.dumps(_finite(value), ensure_ascii=False, indent=indent, allow_nan=False, default=str)
    return harmless_json(text)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, decimal.Decimal):
        return float(value) if value.is_finite() else None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def write_json(out: IO[str], names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """An array of objects, one a line."""
    lead = "[\n"
    for row in rows:
        out.write(lead + json_text(dict(zip(names, row, strict=True))))
        lead = ",\n"
    out.write("[]\n" if lead == "[\n" else "\n]\n")
