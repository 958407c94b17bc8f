"""Tables as HTML: numbers with units for the eye, the exact values with them to sort and to copy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sysdock.library import Column
from sysdock.library.headings import description, table_heading
from sysdock.page.markup import attribute, both, text
from sysdock.page.numbers import measured
from sysdock.sentences import Prose, Words, fact, facts_from_json, in_all, languages
from sysdock.text import SIZES, TIMES

_LONGEST = 1000
_NUMBERS = ("BIGINT", "INTEGER", "DOUBLE")


@dataclass(frozen=True)
class _Shown:
    """The format of a column: the unit of its heading, and the ratio of that to the column's own unit.

    One unit for a whole column: numbers that stand below each other can be compared.
    """

    is_number: bool
    unit: str | None = None
    divisor: int = 1


def table(name: str, columns: Sequence[Column], rows: Sequence[tuple[Any, ...]], label: Words) -> str:
    """A table that scrolls in its own box.

    `name`: its id in the page. `label`: for screen readers.
    """
    shown = [_shown(column, [row[place] for row in rows]) for place, column in enumerate(columns)]
    heads = "".join(_head(column, how) for column, how in zip(columns, shown, strict=True))
    lines = "\n".join(_line(columns, shown, row) for row in rows)
    return (
        f'<div class="wrap" tabindex="0" role="region"{attribute("aria-label", label)}>'
        f'<table class="data" id="{name}"><thead><tr>{heads}</tr></thead>\n'
        f"<tbody>{lines}</tbody></table></div>"
    )


def _head(column: Column, how: _Shown) -> str:
    unit = f" [{text(how.unit)}]" if how.unit else ""
    described = Prose({lang: _described(column, lang) for lang in languages()})
    words = both(Prose({lang: table_heading(column, lang) for lang in languages()})) + unit
    return (
        f'<th scope="col"{_number_class(how.is_number)} data-v="{text(column.name)}"'
        f"{attribute('title', described)}>{words}</th>"
    )


def _shown(column: Column, values: Sequence[Any]) -> _Shown:
    """The unit of times and sizes in which the largest value is at least 1."""
    if column.type not in _NUMBERS:
        return _Shown(False)
    units = {"ns": TIMES, "B": SIZES}.get(column.unit or "")
    if units is None:
        return _Shown(True, column.unit)
    largest = max((abs(value) for value in values if value is not None and math.isfinite(value)), default=0)
    divisor, unit = next((each for each in units if largest >= each[0]), units[-1])
    return _Shown(True, unit, divisor)


def search_field(name: str) -> str:
    """Leaves in the table only lines that hold what is typed; hidden until the page's code shows it."""
    words = both(fact("page/search"))
    field = f'<input type="search" data-search="{name}">'
    return f'<label class="search" hidden>{words} {field} <span data-count aria-live="polite"></span></label>'


def copy_button(name: str) -> str:
    """Copies the table `name` as tab-separated text; hidden until the page's code shows it."""
    words = both(fact("page/copy_table"))
    done = '<span data-label aria-live="polite"></span>'
    return f'<button type="button" data-copy="{name}" hidden>{words}{done}</button>'


def _line(columns: Sequence[Column], shown: Sequence[_Shown], row: tuple[Any, ...]) -> str:
    cells = []
    for column, how, value in zip(columns, shown, row, strict=True):
        if not how.is_number:
            cells.append(_text_cell(column, _exact(value)))
            continue
        words = _exact(value) if column.type == "INTEGER" else _number(value, how.divisor)
        exact = "" if words == _exact(value) else f' data-v="{text(_exact(value))}"'
        cells.append(f'<td class="n"{exact}>{text(words)}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _text_cell(column: Column, value: str) -> str:
    """A text; facts in every language, of which the code is sorted and copied."""
    if column.unit != "fact" or not value:
        return f'<td class="s">{text(_cut(value))}</td>'
    said = {lang: _cut(part) for lang, part in in_all(facts_from_json(value)).items()}
    return f'<td class="s" data-v="{text(value)}">{both(Prose(said))}</td>'


def _number(value: float | int | None, divisor: int) -> str:
    """A number in the unit of its column: two decimals from 1 on, and three digits below it."""
    if value is None or divisor == 1 or not math.isfinite(value):
        return measured(value, None)
    scaled = value / divisor
    if scaled == 0 or abs(scaled) >= 1000:
        return f"{scaled:,.0f}"
    decimals = 2 if abs(scaled) >= 1 else 2 - math.floor(math.log10(abs(scaled)))
    return f"{scaled:,.{decimals}f}"


def _cut(words: str) -> str:
    """At most 1,000 characters: a recorded command can be as long as all memory for arguments."""
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}… ({len(words):,} characters)"


def _number_class(is_number: bool) -> str:
    return ' class="n"' if is_number else ""


def _described(column: Column, lang: str) -> str:
    words = description(column, lang)
    return f"{words} [{column.unit}]" if column.unit not in (None, "fact") else words


def _exact(value: object) -> str:
    """The value as exports write it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
