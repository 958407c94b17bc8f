"""Compares the rows of a result with the table in a page, and writes that table again."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from sysdock.library import Example
from sysdock.library.page import cell_text

Row = Sequence[Any]


def same(value: Any, cell: str | None) -> bool:
    """Whether a value is what a cell says: empty is NULL, decimals are compared to the digits shown."""
    if value is None or cell is None:
        return value is None and cell is None
    if isinstance(value, float):
        digits = len(cell.partition(".")[2])
        try:
            return f"{value:.{digits}f}" == cell or float(cell) == value
        except ValueError:
            return False
    if isinstance(value, str):
        # Names may be in back-ticks; blanks around a cell are lost, so a text of blanks is in quotes.
        return cell in (value, f"`{value}`") or (not value.strip(" ") and cell == f"'{value}'")
    return cell_text(value) == cell


def picked(names: Sequence[str], rows: Sequence[Row], columns: Sequence[str]) -> list[list[Any]]:
    """The columns of the rows that a page shows."""
    places = [names.index(column) for column in columns]
    return [[row[place] for place in places] for row in rows]


def difference(example: Example, rows: Sequence[Row]) -> list[str]:
    """Lines of a diff between the page's table and `rows` (already picked); empty where they agree."""
    matched = len(rows) == len(example.expected_rows) and all(
        same(value, cell)
        for row, cells in zip(rows, example.expected_rows, strict=True)
        for value, cell in zip(row, cells, strict=True)
    )
    if matched:
        return []
    head = table_text([example.expected_columns])
    in_page = head + table_text([[cell or "" for cell in row] for row in example.expected_rows], escape=True)
    real = head + table_text(shown_rows(example, rows))
    lines = list(difflib.unified_diff(in_page, real, "page", "result", lineterm="", n=1))
    return [line for line in lines if not line.startswith("@@")]


def shown_rows(example: Example, rows: Sequence[Row]) -> list[list[str]]:
    """Rows as cells; where the page's cell is right already it stays as it is written."""
    shown = []
    for number, row in enumerate(rows):
        before = example.expected_rows[number] if number < len(example.expected_rows) else [None] * len(row)
        shown.append(
            [
                cell_text(cell if cell is not None and same(value, cell) else value)
                for value, cell in zip(row, before, strict=False)
            ]
        )
    return shown


def table_text(rows: Sequence[Sequence[str]], escape: bool = False) -> list[str]:
    """Lines of a Markdown table, without its rule."""
    return [
        "| " + " | ".join(cell_text(cell) if escape and cell else cell for cell in row) + " |" for row in rows
    ]


def blessed(lines: list[str], example: Example, columns: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """The lines of a page with the table of `example` replaced (or added) by the real one."""
    table = [*table_text([columns]), "|" + "---|" * len(columns), *table_text(shown_rows(example, rows))]
    if example.table_lines:
        first, end = example.table_lines
        return lines[: first - 1] + table + lines[end - 1 :]
    return [*lines[: example.insert_at], "", *table, *lines[example.insert_at :]]
