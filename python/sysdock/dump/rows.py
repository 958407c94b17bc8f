"""Rows as the questions about a dump answer them: a list of tuples that know the names of their columns."""

from __future__ import annotations

import keyword
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, overload

# Limits of a displayed table: rows, and characters of each value.
_SHOWN = 60
_WIDTH = 160


class Rows(Sequence[Any]):
    """A table: `rows["pid"]` is a column, `rows[0].pid` a value, and `for row in rows` goes over its rows.

    The column `status` says `ok`, or why something of the row could not be read: that is None then.
    """

    def __init__(self, columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "rows") -> None:
        self.columns = tuple(columns)
        self.title = title
        self._rows = list(map(_kind_of(self.columns)._make, rows))

    @classmethod
    def of_columns(cls, columns: Sequence[tuple[str, Sequence[Any]]], title: str = "rows") -> Rows:
        """Rows of columns of the same length."""
        names = [name for name, _ in columns]
        return cls(names, zip(*(values for _, values in columns), strict=True) if columns else (), title)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)

    @overload
    def __getitem__(self, place: int | str) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> Rows: ...
    def __getitem__(self, place: int | str | slice) -> Any:
        """A row by its number, some rows, or a column by its name."""
        if isinstance(place, str):
            if place not in self.columns:
                raise KeyError(f"{place}: the columns are {', '.join(self.columns)}")
            number = self.columns.index(place)
            return [row[number] for row in self._rows]
        if isinstance(place, slice):
            return Rows(self.columns, self._rows[place], self.title)
        return self._rows[place]

    def where(self, wanted: Callable[[Any], object]) -> Rows:
        """The rows for which `wanted(row)` is true: `tasks.where(lambda task: task.state == "D")`."""
        return Rows(self.columns, filter(wanted, self._rows), self.title)

    def sorted(self, column: str, *, reverse: bool = False) -> Rows:
        """The rows in the order of a column; those without a value come last."""
        number = self.columns.index(column)
        known = [row for row in self._rows if row[number] is not None]
        others = [row for row in self._rows if row[number] is None]
        return Rows(
            self.columns,
            sorted(known, key=lambda row: row[number], reverse=reverse) + others,
            self.title,
        )

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, most: int = _SHOWN) -> list[str]:
        """A table of at most `most` rows."""
        from sysdock.analysis.writing import table_lines
        from sysdock.library import Column

        cells = [[_shown(name, value) for name, value in zip(self.columns, row, strict=True)] for row in self]
        types = [
            "BIGINT" if any(isinstance(row[place], int) for row in cells) else "VARCHAR"
            for place in range(len(self.columns))
        ]
        heads = [
            Column(name, type_, _unit(name), "") for name, type_ in zip(self.columns, types, strict=True)
        ]
        lines = table_lines(heads, cells[:most], _WIDTH)
        left = f"{len(self) - most} more rows" if len(self) > most else None
        return [*lines, *([left] if left else [])]


def _kind_of(columns: tuple[str, ...]) -> Any:
    return namedtuple("Row", [_field(name) for name in columns], rename=True)


def _field(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


def _unit(name: str) -> str | None:
    return next((unit for ending, unit in (("_ns", "ns"), ("_bytes", "B")) if name.endswith(ending)), None)


def _shown(name: str, value: Any) -> Any:
    """Addresses are read as such, and lists as lists."""
    if isinstance(value, int) and not isinstance(value, bool):
        is_address = name == "address" or value >= 1 << 47 or value < -(1 << 46)
        return f"{value & (1 << 64) - 1:#x}" if is_address else value
    if value is None or isinstance(value, (str, float, bool)):
        return value
    return str(value)
