"""System calls of programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sysdock.sections.coverage import understood
from sysdock.sections.section import ScreenTable, Section, Words
from sysdock.text import human_bytes, human_count, human_ns

if TYPE_CHECKING:
    from sysdock.analysis import Session

# Rows of the first screen, and the analyses they come from.
_CALLS, _FILES = 5, 3
_COLUMNS: tuple[Words, Words, Words, Words] = (
    ("calls", "回数"),
    ("errors", "エラー"),
    ("time", "時間"),
    ("bytes", "バイト"),
)


def _screen(session: Session) -> Sequence[ScreenTable]:
    tops: Sequence[tuple[Words, str, dict[str, Any], str, int]] = (
        (("Calls by time", "時間の長い呼び出し"), "io/summary", {}, "call", _CALLS),
        (("Files by time", "時間の長いファイル"), "io/files", {"per_call": False}, "path", _FILES),
    )
    return [
        ScreenTable(title, _COLUMNS, rows)
        for title, analysis, params, name, most in tops
        if not session.missing(session.library.analysis(analysis))
        if (rows := _rows(session, analysis, params, name, most))
    ]


def _rows(
    session: Session, analysis: str, params: dict[str, Any], name: str, most: int
) -> list[tuple[str, tuple[str, str, str, str]]]:
    """The first rows of an analysis: its column `name`, calls, errors, time and bytes."""
    result = session.run(analysis, params)
    columns = [column.name for column in result.columns]
    rows = [dict(zip(columns, row, strict=True)) for row in result.rows(most)]
    return [
        (
            row[name],
            (
                human_count(row["calls"]),
                human_count(row["errors"]),
                human_ns(row["time_ns"]),
                human_bytes(row["bytes"]),
            ),
        )
        for row in rows
    ]


SECTION = Section(
    about="calls",
    order=10,
    needs=("calls",),
    title=("calls of programs", "プログラムのシステムコール"),
    coverage=understood,
    screen=_screen,
    of_a_command=True,
)
