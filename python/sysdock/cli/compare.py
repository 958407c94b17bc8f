"""`sysdock compare`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sysdock.cli.options import (
    as_root_option,
    color_option,
    filter_options,
    lang_option,
    open_recordings,
    open_session,
    parse_params,
    raw_option,
)
from sysdock.sections import all_sections

if TYPE_CHECKING:
    from sysdock.analysis import Session

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
_PARTS = ("totals", "findings", *(part.name for section in all_sections() for part in section.compared))


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
@as_root_option
@raw_option
@filter_options
@lang_option
@color_option
def command(
    a: Path,
    b: Path,
    analysis: str | None,
    repeat: int | None,
    as_root: bool,
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
    from sysdock.analysis.writing import write_csv
    from sysdock.cli.output import remark, remark_on, say, terminal_width
    from sysdock.errors import UserError
    from sysdock.screen.compare import (
        as_json,
        comparison_lines,
        differing_conditions,
        heads,
        part_table,
        status_names,
    )
    from sysdock.sections.comparison import compare

    if repeat is not None:
        from sysdock.cli.compare_runs import compare_runs

        commands = [word for word in (str(a), str(b), analysis) if word not in ("--", None)]
        compare_runs(commands, repeat, format_, as_root=as_root)
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

        def remark_on_conditions() -> None:
            for condition in differing_conditions(first, second, lang):
                remark(condition)

        if analysis is not None:
            _rows_of(first, second, analysis, parse_params(pairs), limit, format_, lang, raw=raw)
            remark_on_conditions()
            remark_on(first, lang=lang)
            remark_on(second, lang=lang)
            return
        _remark_on_commands(first, second, lang)
        remark_on_conditions()
        found = compare(first, second)
        if part in found.not_computed:
            # This part was the only one requested.
            raise found.not_computed[part]
        rows = None if limit == 0 or (limit is None and format_ != "table") else limit or _ROWS
        if format_ == "table":
            clocks = first.recording.has_clock and second.recording.has_clock
            lines = comparison_lines(found, part, rows, lang, clocks=clocks, room=terminal_width())
            say(lines, heads=heads(lang), statuses=status_names(lang))
        elif format_ == "csv":
            columns, content = part_table(found, part, rows, lang)
            write_csv(sys.stdout, [column.name for column in columns], content, raw=raw)
        else:
            sys.stdout.write(as_json(found, part, rows, lang))
        remark_on(first, lang=lang)
        remark_on(second, lang=lang)


def _remark_on_commands(a: Session, b: Session, lang: str) -> None:
    """Warns that the two recordings may not be of the same work."""
    from sysdock.cli.output import remark
    from sysdock.screen.compare import word

    commands = [session.recording.manifest.get("command") for session in (a, b)]
    if all(commands) and commands[0] != commands[1]:
        remark(word("commands_differ", lang, a=commands[0], b=commands[1]))


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
    from sysdock.cli.output import say, terminal_width
    from sysdock.screen.color import painted_head
    from sysdock.screen.compare import word

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
        lines = painted_head(table, sys.stdout) if rows else [word("none", lang)]
        if len(rows) < len(found.rows):
            lines.append(word("more", lang, count=len(found.rows) - len(rows)))
        say(lines)
