"""Prints results to standard output, and remarks on them to standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from sysdock.sentences import Words, fact, named
from sysdock.sentences import say as say_words
from sysdock.text import fitted, printable_lines

if TYPE_CHECKING:
    from sysdock.analysis import Result, Session
    from sysdock.library import Column

TABLE_LIMIT = 50
# A single row that is wider than this is printed as a line for each column, even without a terminal.
_WIDEST_ROW = 130


def terminal_width(stream: TextIO | None = None) -> int | None:
    """Columns of the terminal on `stream` (default standard output); None where that is not one."""
    stream = stream or sys.stdout
    try:
        # A terminal that does not know its size says 0.
        return (os.get_terminal_size(stream.fileno()).columns or None) if stream.isatty() else None
    except (OSError, ValueError):
        return None


def remark(text: str) -> None:
    """A line on standard error."""
    say(f"sysdock: {printable_lines(text)}".split("\n"), sys.stderr)


def say(
    lines: Iterable[str],
    stream: TextIO | None = None,
    *,
    heads: Collection[str] = (),
    statuses: Mapping[str, str] | None = None,
) -> None:
    """Prints lines for people on `stream`, by default standard output: as wide as its terminal, in colour.

    `heads` and `statuses`: as `painted_words` has them.
    """
    from sysdock.screen.color import painted_words

    stream = stream or sys.stdout
    fitting = fitted(lines, terminal_width(stream))
    print("\n".join(painted_words(fitting, stream, heads, statuses or {})), file=stream, flush=True)


def remark_on(session: Session, needs: Iterable[str] = (), lang: str = "en") -> None:
    """Says on standard error what limits the answer: filters that do not apply, and what is missing."""
    for words in (*session.notes, *_missing(session, needs)):
        remark(say_words(words, lang))


def _missing(session: Session, needs: Iterable[str]) -> Iterator[Words]:
    """Data that the recording lacks."""

    recording = session.recording
    if not recording.has_clock:
        yield fact("screen/log_has_no_timestamps")
    if not recording.manifest["complete"]:
        yield fact("screen/recording_incomplete_ended", ended=named("endings", recording.ended_by))
    for capture in recording.captures:
        missing = capture["total"] - capture["understood"]
        if missing:
            unit = named("units", capture["unit"])
            see = f"`sysdock info {recording.folder}`"
            yield fact("screen/input_could_not_parsed", missing=missing, unit=unit, see=see)
    for name in needs:
        if name in recording.tables and recording.lost(name):
            lost = f"{recording.lost(name):,}"
            yield fact("screen/events_table_lost", lost=lost, name=name)


def print_result(result: Result, format_: str, limit: int | None, *, raw: bool = False) -> None:
    """Prints a result; `limit` None is the format's own (50 rows of a table, else all), 0 is all."""
    if format_ != "table":
        result.copy_to(sys.stdout.buffer, format_, limit or None, raw=raw)
        return
    limit = TABLE_LIMIT if limit is None else limit
    rows = result.rows(limit or None)
    sys.stdout.write("\n".join(_lines(result.columns, rows)) + "\n")
    more = result.row_count() - len(rows)
    if more:
        remark(f"{more:,} more rows; `--limit 0` shows all")
    if not rows:
        remark("no rows")


def _lines(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> list[str]:
    from sysdock.analysis.writing import row_lines, table_lines
    from sysdock.screen.color import painted_head

    width = terminal_width()
    lines = table_lines(columns, rows, width)
    is_wide = len(rows) == 1 and max(map(len, lines)) > (width or _WIDEST_ROW)
    return row_lines(columns, rows[0]) if is_wide else painted_head(lines, sys.stdout)


def print_rows(
    columns: Sequence[Column],
    rows: Iterable[Sequence[Any]],
    format_: str,
    width: int | None = None,
    *,
    raw: bool = False,
) -> None:
    """Prints rows that are few."""
    from sysdock.analysis.writing import table_lines, write_csv, write_json
    from sysdock.screen.color import painted_head

    names = [column.name for column in columns]
    if format_ == "csv":
        write_csv(sys.stdout, names, rows, raw=raw)
    elif format_ == "json":
        write_json(sys.stdout, names, rows)
    else:
        lines = table_lines(columns, list(rows), width)
        sys.stdout.write("\n".join(painted_head(lines, sys.stdout)) + "\n")
