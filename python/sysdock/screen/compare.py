"""Two recordings next to each other, as text."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sysdock.analysis.writing import json_text, table_lines
from sysdock.library import Column
from sysdock.screen.color import painted_head
from sysdock.sections import all_sections, sections_of
from sysdock.sections.comparison import (
    CHANGE_COLUMNS,
    FINDING_COLUMNS,
    TOTAL_COLUMNS,
    change_row,
    finding_row,
    total_rows,
)
from sysdock.sentences import fact, is_source, languages, say, with_unit
from sysdock.text import printable

if TYPE_CHECKING:
    from sysdock.analysis import Session
    from sysdock.sections.comparison import Comparison

# The lists of all sections, with their titles.
LISTS = {part.name: part.title for section in all_sections() for part in section.compared}
PARTS = ("totals", "findings", *LISTS)
# Runs of one program differ by some percent for no reason, and the ratio is shown with one digit.
_SAME_WITHIN = 1.05


def word(name: str, lang: str, **values: Any) -> str:
    """A text of comparisons."""
    return say(fact(f"comparison/{name}", **values), lang)


def title(name: str, lang: str) -> str:
    """What a list is called."""
    return say(LISTS[name], lang)


def heads(lang: str) -> list[str]:
    """Lines that are headings."""
    return [word("totals", lang), word("findings", lang), *(title(name, lang) for name in LISTS)]


def status_names(lang: str) -> dict[str, str]:
    """What changes of findings are called, and the status that each is coloured as."""
    like = {"new": "finding", "both": "note", "gone": "ok"}
    return {word(state, lang): status for state, status in like.items()}


def comparison_lines(
    found: Comparison, part: str, rows: int | None, lang: str, *, clocks: bool, room: int | None
) -> list[str]:
    """A part of the comparison, or all of them; `rows`: of each list, `clocks`: whether both have times."""

    lines: list[str] = []
    if part in ("all", "totals"):
        lines += _verdict(found, lang, clocks)
        lines += _trouble(found, "totals", word("totals", lang), lang)
        columns = [Column(name, "VARCHAR", None, "") for name in (word("totals", lang), "A", "B", "B / A")]
        table = []
        for of_a, of_b in found.totals.values():
            in_a, in_b = of_a.value, of_b.value
            ratio = f"{in_b / in_a:.2f}" if in_a and in_b is not None else "-"
            shown = [("-" if value is None else with_unit(value, of_a.unit)) for value in (in_a, in_b)]
            table.append((say(of_a.name, lang), *shown, ratio))
        lines += [*_table_lines(columns, table, room), ""] if table else []
    if part in ("all", "findings"):
        states = [finding_row(change, lang) for change in found.findings]
        shown_rows = [(word(row[0], lang), *row[2:6]) for row in states]
        columns = [FINDING_COLUMNS[0], *FINDING_COLUMNS[2:6]]
        lines += [
            word("findings", lang),
            *(_table_lines(_named(columns, lang), shown_rows, room) if states else [word("none", lang)]),
            "",
        ]
    for name in LISTS:
        changes = found.lists[name]
        if part == "all":
            lines += _trouble(found, name, title(name, lang), lang)
        if part == name or (part == "all" and changes):
            cut = changes[:rows] if rows else changes
            lines += [
                title(name, lang),
                *_table_lines(_named(CHANGE_COLUMNS, lang), [change_row(change) for change in cut], room),
            ]
            if len(changes) > len(cut):
                lines.append(word("more", lang, count=len(changes) - len(cut)))
            lines.append("")
    return lines[:-1]


def _named(columns: Sequence[Column], lang: str) -> list[Column]:
    """The columns by the names that people read in that language."""

    if is_source(lang):
        return list(columns)
    return [replace(column, name=say(column.head, lang)) if column.head else column for column in columns]


def _table_lines(columns: Sequence[Column], rows: Sequence[Sequence[Any]], room: int | None) -> list[str]:

    return painted_head(table_lines(columns, rows, room), sys.stdout)


def _trouble(found: Comparison, part: str, title: str, lang: str) -> list[str]:
    """Lines that state that a part, or some of it, could not be computed, and why."""

    error = found.not_computed.get(part)
    return [title, printable(f"{error.place}: {say(error.words, lang)}"), ""] if error else []


def _verdict(found: Comparison, lang: str, clocks: bool) -> list[str]:
    """Whether the second was faster, where both have a time."""
    if "elapsed_ns" not in found.totals:
        return []
    a, b = (total.value for total in found.totals["elapsed_ns"])
    state, times = "unknown", 1.0
    if clocks and a and b:
        times = max(a, b) / min(a, b)
        state = "same" if times < _SAME_WITHIN else "faster" if b < a else "slower"
    once = [word("once", lang)] if state != "unknown" else []
    return [word(state, lang, times=f"{times:.1f}", a=a, b=b), *once, ""]


def part_table(
    found: Comparison, part: str, rows: int | None, lang: str
) -> tuple[Any, list[tuple[Any, ...]]]:
    """Columns and rows of one part, exact values."""

    if part == "totals":
        return TOTAL_COLUMNS, total_rows(found)
    if part == "findings":
        return FINDING_COLUMNS, [finding_row(change, lang) for change in found.findings]
    changes = found.lists[part]
    return CHANGE_COLUMNS, [change_row(change) for change in (changes[:rows] if rows else changes)]


def as_json(found: Comparison, part: str, rows: int | None, lang: str) -> str:
    """A part as rows, or all parts by name; exact values."""

    parts = PARTS if part == "all" else (part,)
    answer: dict[str, Any] = {}
    for name in parts:
        columns, content = part_table(found, name, rows, lang)
        known = name not in found.not_computed
        objects = [dict(zip([column.name for column in columns], row, strict=True)) for row in content]
        answer[name] = objects if known else None
    if part == "all" and found.not_computed:
        answer["not_computed"] = {
            name: f"{error.place}: {say(error.words, languages()[0])}"
            for name, error in found.not_computed.items()
        }
    return json_text(answer if part == "all" else answer[part], indent=1) + "\n"


def differing_conditions(a: Session, b: Session, lang: str) -> list[str]:
    """Numbers that were counted in different ways differ for that reason."""
    found = []
    for section in sections_of(a):
        if section.conditions is None or section not in sections_of(b):
            continue
        of_a, of_b = section.conditions(a), section.conditions(b)
        for name in dict.fromkeys([*of_a, *of_b]):
            values = [conditions.get(name, word("not_known", lang)) for conditions in (of_a, of_b)]
            if values[0] != values[1]:
                found.append(word("condition_differs", lang, condition=name, a=values[0], b=values[1]))
    return found
