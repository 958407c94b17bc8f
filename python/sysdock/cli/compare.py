"""`sysdock compare`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sysdock.cli.options import (
    color_option,
    filter_options,
    lang_option,
    open_recordings,
    open_session,
    parse_params,
    raw_option,
)
from sysdock.sections import all_sections
from sysdock.sentences import fact, is_source, languages
from sysdock.sentences import say as say_words

if TYPE_CHECKING:
    from sysdock.analysis import Session
    from sysdock.analysis.comparison import Comparison
    from sysdock.library import Column

_EPILOG = """Example:

\b
  sysdock compare before after
  sysdock compare before after --format json
  sysdock compare before after --part files --format csv --limit 0
  sysdock compare before after time/where
  sysdock compare before after syscalls/latency --limit 20
  sysdock compare --repeat 10 -- 'sort words' -- 'LC_ALL=C sort words'     run both in turns
"""
_ROWS = 10
# The lists of all sections, with their titles.
_LISTS = {part.name: part.title for section in all_sections() for part in section.compared}
_PARTS = ("totals", "findings", *_LISTS)
# Runs of one program differ by some percent for no reason, and the ratio is shown with one digit.
_SAME_WITHIN = 1.05


def _word(name: str, lang: str, **values: Any) -> str:
    return say_words(fact(f"comparison/{name}", **values), lang)


def _title(name: str, lang: str) -> str:
    return say_words(_LISTS[name], lang)


@click.command("compare", epilog=_EPILOG)
@click.argument("a", metavar="A", type=click.Path(path_type=Path, readable=False))
@click.argument("b", metavar="B", type=click.Path(path_type=Path, readable=False))
@click.argument("analysis", required=False)
@click.option(
    "-p", "--param", "pairs", metavar="NAME=VALUE", multiple=True, help="Set a parameter of the analysis."
)
@click.option(
    "--part",
    type=click.Choice(["all", *_PARTS]),
    default="all",
    show_default=True,
    help="Only this part; csv needs one.",
)
@click.option("--limit", type=click.IntRange(0), help="Rows per list; 0: all. Default: 10 for a table.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    help="table (default): for reading. csv, json: exact values.",
)
@click.option(
    "--repeat",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="A and B are commands: run both N times, in turns, and report whether one takes longer.",
)
@raw_option
@filter_options
@lang_option
@color_option
def command(
    a: Path,
    b: Path,
    analysis: str | None,
    repeat: int | None,
    pairs: tuple[str, ...],
    part: str,
    limit: int | None,
    format_: str,
    raw: bool,
    lang: str,
    **options: Any,
) -> None:
    """Compare recordings A and B: findings that are gone or new, calls, files, bytes, time.

    With ANALYSIS, the rows of that analysis in both recordings stand side by side, the largest change first.
    """
    from sysdock.analysis.comparison import compare
    from sysdock.cli.output import remark_on, say
    from sysdock.errors import UserError

    if repeat is not None:
        from sysdock.cli.compare_runs import compare_runs

        compare_runs(
            [word for word in (str(a), str(b), analysis) if word not in ("--", None)], repeat, format_
        )
        return
    if analysis is None and pairs:
        raise UserError("a parameter is one of an analysis", "name the analysis after A and B", "--param")
    if analysis is not None and part != "all":
        raise UserError("an analysis has no parts", "leave out --part, or the analysis", f"--part {part}")
    if analysis is None and format_ == "csv" and part == "all":
        raise UserError("csv is one table", f"say which with --part: {', '.join(_PARTS)}", "--format csv")
    # Both are opened before the first of them loads the engine.
    open_recordings(a, b)
    with open_session(a, options) as first, open_session(b, options) as second:
        if analysis is not None:
            _rows_of(first, second, analysis, parse_params(pairs), limit, format_, lang, raw=raw)
            _remark_on_conditions(first, second, lang)
            remark_on(first, lang=lang)
            remark_on(second, lang=lang)
            return
        _remark_on_commands(first, second, lang)
        _remark_on_conditions(first, second, lang)
        found = compare(first, second)
        if part in found.not_computed:
            # This part was the only one requested.
            raise found.not_computed[part]
        rows = None if limit == 0 or (limit is None and format_ != "table") else limit or _ROWS
        if format_ == "table":
            clocks = first.recording.has_clock and second.recording.has_clock
            heads = [_word("totals", lang), _word("findings", lang), *(_title(name, lang) for name in _LISTS)]
            like = {"new": "finding", "both": "note", "gone": "ok"}
            say(
                _lines(found, part, rows, lang, clocks),
                heads=heads,
                statuses={_word(state, lang): status for state, status in like.items()},
            )
        elif format_ == "csv":
            _csv(found, part, rows, lang, raw=raw)
        else:
            _json(found, part, rows, lang)
        remark_on(first, lang=lang)
        remark_on(second, lang=lang)


def _remark_on_commands(a: Session, b: Session, lang: str) -> None:
    """Warns that the two recordings may not be of the same work."""
    from sysdock.cli.output import remark

    commands = [session.recording.manifest.get("command") for session in (a, b)]
    if all(commands) and commands[0] != commands[1]:
        remark(_word("commands_differ", lang, a=commands[0], b=commands[1]))


def _remark_on_conditions(a: Session, b: Session, lang: str) -> None:
    """Numbers that were counted in different ways differ for that reason."""
    from sysdock.cli.output import remark
    from sysdock.sections import sections_of

    for section in sections_of(a):
        if section.conditions is None or section not in sections_of(b):
            continue
        of_a, of_b = section.conditions(a), section.conditions(b)
        for name in dict.fromkeys([*of_a, *of_b]):
            missing = _word("not_known", lang)
            values = [conditions.get(name, missing) for conditions in (of_a, of_b)]
            if values[0] == values[1]:
                continue
            remark(_word("condition_differs", lang, condition=name, a=values[0], b=values[1]))


def _rows_of(
    a: Session,
    b: Session,
    analysis: str,
    params: dict[str, str],
    limit: int | None,
    format_: str,
    lang: str,
    *,
    raw: bool,
) -> None:
    """Prints what one analysis says of both."""
    from sysdock.analysis.matched import compare_rows
    from sysdock.analysis.writing import json_text, table_lines, write_csv
    from sysdock.cli.color import painted_head
    from sysdock.cli.output import say, terminal_width

    found = compare_rows(a, b, a.library.analysis(analysis), params)
    most = _ROWS if limit is None and format_ == "table" else limit or None
    names, rows = [column.name for column in found.columns], found.rows[:most]
    if format_ == "csv":
        write_csv(sys.stdout, names, rows, raw=raw)
    elif format_ == "json":
        objects = [dict(zip(names, row, strict=True)) for row in rows]
        sys.stdout.write(json_text(objects, indent=1) + "\n")
    else:
        table = table_lines(found.columns, rows, terminal_width())
        lines = painted_head(table, sys.stdout) if rows else [_word("none", lang)]
        if len(rows) < len(found.rows):
            lines.append(_word("more", lang, count=len(found.rows) - len(rows)))
        say(lines)


def _lines(found: Comparison, part: str, rows: int | None, lang: str, clocks: bool) -> list[str]:
    from sysdock.analysis.comparison import (
        CHANGE_COLUMNS,
        FINDING_COLUMNS,
        change_row,
        finding_row,
    )
    from sysdock.library import Column
    from sysdock.sentences import with_unit

    lines: list[str] = []
    if part in ("all", "totals"):
        lines += _verdict(found, lang, clocks)
        lines += _trouble(found, "totals", _word("totals", lang), lang)
        columns = [Column(name, "VARCHAR", None, "") for name in (_word("totals", lang), "A", "B", "B / A")]
        table = []
        for of_a, of_b in found.totals.values():
            in_a, in_b = of_a.value, of_b.value
            ratio = f"{in_b / in_a:.2f}" if in_a and in_b is not None else "-"
            shown = [("-" if value is None else with_unit(value, of_a.unit)) for value in (in_a, in_b)]
            table.append((say_words(of_a.name, lang), *shown, ratio))
        lines += [*_table_lines(columns, table), ""] if table else []
    if part in ("all", "findings"):
        states = [finding_row(change, lang) for change in found.findings]
        shown_rows = [(_word(row[0], lang), *row[2:6]) for row in states]
        columns = [FINDING_COLUMNS[0], *FINDING_COLUMNS[2:6]]
        lines += [
            _word("findings", lang),
            *(_table_lines(_named(columns, lang), shown_rows) if states else [_word("none", lang)]),
            "",
        ]
    for name in _LISTS:
        changes = found.lists[name]
        if part == "all":
            lines += _trouble(found, name, _title(name, lang), lang)
        if part == name or (part == "all" and changes):
            cut = changes[:rows] if rows else changes
            lines += [
                _title(name, lang),
                *_table_lines(_named(CHANGE_COLUMNS, lang), [change_row(change) for change in cut]),
            ]
            if len(changes) > len(cut):
                lines.append(_word("more", lang, count=len(changes) - len(cut)))
            lines.append("")
    return lines[:-1]


def _named(columns: Sequence[Column], lang: str) -> list[Column]:
    """The columns by the names that people read in that language."""
    from dataclasses import replace

    if is_source(lang):
        return list(columns)
    return [
        replace(column, name=say_words(column.head, lang)) if column.head else column for column in columns
    ]


def _table_lines(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> list[str]:
    from sysdock.analysis.writing import table_lines
    from sysdock.cli.color import painted_head
    from sysdock.cli.output import terminal_width

    return painted_head(table_lines(columns, rows, terminal_width()), sys.stdout)


def _trouble(found: Comparison, part: str, title: str, lang: str) -> list[str]:
    """Lines that state that a part, or some of it, could not be computed, and why."""
    from sysdock.text import printable

    error = found.not_computed.get(part)
    return [title, printable(f"{error.place}: {say_words(error.words, lang)}"), ""] if error else []


def _verdict(found: Comparison, lang: str, clocks: bool) -> list[str]:
    """Whether the second was faster, where both have a time."""
    if "elapsed_ns" not in found.totals:
        return []
    a, b = (total.value for total in found.totals["elapsed_ns"])
    state, times = "unknown", 1.0
    if clocks and a and b:
        times = max(a, b) / min(a, b)
        state = "same" if times < _SAME_WITHIN else "faster" if b < a else "slower"
    once = [_word("once", lang)] if state != "unknown" else []
    return [_word(state, lang, times=f"{times:.1f}", a=a, b=b), *once, ""]


def _csv(found: Comparison, part: str, rows: int | None, lang: str, *, raw: bool) -> None:
    from sysdock.analysis.writing import write_csv

    columns, content = _table(found, part, rows, lang)
    write_csv(sys.stdout, [column.name for column in columns], content, raw=raw)


def _table(found: Comparison, part: str, rows: int | None, lang: str) -> tuple[Any, list[tuple[Any, ...]]]:
    """Columns and rows of one part, exact values."""
    from sysdock.analysis.comparison import (
        CHANGE_COLUMNS,
        FINDING_COLUMNS,
        TOTAL_COLUMNS,
        change_row,
        finding_row,
        total_rows,
    )

    if part == "totals":
        return TOTAL_COLUMNS, total_rows(found)
    if part == "findings":
        return FINDING_COLUMNS, [finding_row(change, lang) for change in found.findings]
    changes = found.lists[part]
    return CHANGE_COLUMNS, [change_row(change) for change in (changes[:rows] if rows else changes)]


def _json(found: Comparison, part: str, rows: int | None, lang: str) -> None:
    from sysdock.analysis.writing import json_text

    parts = _PARTS if part == "all" else (part,)
    answer: dict[str, Any] = {}
    for name in parts:
        columns, content = _table(found, name, rows, lang)
        known = name not in found.not_computed
        objects = [dict(zip([column.name for column in columns], row, strict=True)) for row in content]
        answer[name] = objects if known else None
    if part == "all" and found.not_computed:
        answer["not_computed"] = {
            name: f"{error.place}: {say_words(error.words, languages()[0])}"
            for name, error in found.not_computed.items()
        }
    sys.stdout.write(json_text(answer if part == "all" else answer[part], indent=1) + "\n")
