"""Tables as HTML: numbers with units for the eye, the exact values beside them to sort and to copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sysdock.library import Column
from sysdock.library.headings import heading
from sysdock.page.markup import both, text
from sysdock.page.numbers import measured

_LONGEST = 1000
_NUMBERS = ("BIGINT", "INTEGER", "DOUBLE")


def table(name: str, columns: Sequence[Column], rows: Sequence[tuple[Any, ...]], label: str) -> str:
    """A table that scrolls in its own box. `name`: its id in the page, `label`: for screen readers."""
    kinds = [_is_count(column) for column in columns]
    heads = "".join(
        f'<th scope="col"{_number_class(is_number)} data-v="{text(column.name)}" '
        f'title="{text(_described(column))}">{both(text(column.name), text(heading(column, "ja")))}</th>'
        for column, is_number in zip(columns, kinds, strict=True)
    )
    lines = "\n".join(_line(columns, kinds, row) for row in rows)
    return (
        f'<div class="wrap" tabindex="0" role="region" aria-label="{text(label)}">'
        f'<table class="data" id="{name}"><thead><tr>{heads}</tr></thead>\n'
        f"<tbody>{lines}</tbody></table></div>"
    )


def search_field(name: str) -> str:
    """Leaves in the table only lines that hold what is typed; hidden until the page's code shows it."""
    words = both("Search:", "検索:")
    field = f'<input type="search" data-search="{name}">'
    return f'<label class="search" hidden>{words} {field} <span data-count aria-live="polite"></span></label>'


def copy_button(name: str) -> str:
    """Copies the table `name` as tab-separated text; hidden until the page's code shows it."""
    words = both("Copy table", "表をコピー")
    done = '<span data-label aria-live="polite"></span>'
    return f'<button type="button" data-copy="{name}" hidden>{words}{done}</button>'


def _line(columns: Sequence[Column], kinds: Sequence[bool], row: tuple[Any, ...]) -> str:
    cells = []
    for column, is_number, value in zip(columns, kinds, row, strict=True):
        if not is_number:
            cells.append(f'<td class="s">{text(_cut(_exact(value)))}</td>')
            continue
        shown = measured(value, column.unit) if column.type != "INTEGER" else _exact(value)
        exact = "" if shown == _exact(value) else f' data-v="{text(_exact(value))}"'
        cells.append(f'<td class="n"{exact}>{text(shown)}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _cut(words: str) -> str:
    """At most 1,000 characters: a recorded command can be as long as all memory for arguments."""
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}… ({len(words):,} characters)"


def _is_count(column: Column) -> bool:
    return column.type in _NUMBERS


def _number_class(is_number: bool) -> str:
    return ' class="n"' if is_number else ""


def _described(column: Column) -> str:
    return f"{column.text} [{column.unit}]" if column.unit else column.text


def _exact(value: object) -> str:
    """The value as exports write it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
