"""System calls of programs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sysdock.errors import NotComputed
from sysdock.sections import where
from sysdock.sections.coverage import understood
from sysdock.sections.section import Compared, ScreenTable, Section, Statement, Total, Words
from sysdock.text import human_bytes, human_count, human_ns

if TYPE_CHECKING:
    from sysdock.analysis import Session

# Rows of the first screen, and the analyses they come from.
_CALLS, _FILES = 3, 2
_COLUMNS: tuple[Words, Words, Words, Words] = (
    ("calls", "回数"),
    ("errors", "エラー"),
    ("time", "時間"),
    ("bytes", "バイト"),
)

_TOTALS_SQL = """SELECT t.elapsed_ns, t.calls, t.all_ns, t.busy_ns, t.data_ns, t.metadata_ns, t.sync_ns,
    t.data_calls, t.data_bytes, t.metadata_calls,
    (SELECT count(*) FROM processes WHERE task_id = process_id) AS processes,
    (SELECT CAST(sum(calls) AS BIGINT) FROM call_use WHERE errno IS NOT NULL) AS errors
FROM totals AS t"""
_TOTALS: dict[str, tuple[str, str, str | None]] = {
    "elapsed_ns": ("elapsed time", "経過時間", "ns"),
    "all_ns": ("time in calls, including waits", "呼び出しの時間 (待ちを含む)", "ns"),
    "busy_ns": ("time in calls that do not wait", "待ち以外の呼び出しの時間", "ns"),
    "data_ns": ("time reading and writing files", "ファイルの読み書きの時間", "ns"),
    "metadata_ns": ("time in metadata", "メタデータの時間", "ns"),
    "sync_ns": ("time waiting for the disk", "ディスク待ちの時間", "ns"),
    "calls": ("calls", "呼び出し", None),
    "errors": ("calls that failed", "失敗した呼び出し", None),
    "data_calls": ("reads and writes of files", "ファイルの読み書き", None),
    "metadata_calls": ("metadata calls", "メタデータの呼び出し", None),
    "data_bytes": ("bytes read and written", "読み書きしたバイト数", "B"),
    "processes": ("processes", "プロセス", None),
}

# The files of each recording that are compared: those with the most time.
_MOST_FILES = 100_000

_CALLS_SQL = """SELECT call, CAST(sum(calls) AS BIGINT), CAST(sum(time_ns) AS BIGINT),
    CAST(sum(transferred_bytes) AS BIGINT)
FROM call_use GROUP BY call"""
_FILES_SQL = f"""WITH used AS (
    SELECT path_id, CAST(sum(u.calls) AS BIGINT) AS calls, CAST(sum(u.time_ns) AS BIGINT) AS ns,
        CAST(sum(u.transferred_bytes) AS BIGINT) AS bytes
    FROM file_use AS u GROUP BY path_id
)
SELECT p.path, u.calls, u.ns, u.bytes
FROM (SELECT * FROM used ORDER BY coalesce(ns, 0) DESC, calls DESC, path_id LIMIT {_MOST_FILES}) AS u
JOIN paths AS p ON p.path_id = u.path_id"""


def _screen(session: Session) -> Sequence[ScreenTable]:
    tops: Sequence[tuple[Words, str, dict[str, Any], str, int]] = (
        (("Calls by time", "時間の長い呼び出し"), "io/summary", {}, "call", _CALLS),
        (("Files by time", "時間の長いファイル"), "io/files", {"per_call": False}, "path", _FILES),
    )
    # Where the scheduler was recorded, the section of its own shows this.
    found = [] if "run_states" in session.recording.tables else list(where.screen(session))
    for title, analysis, params, name, most in tops:
        if session.missing(session.library.analysis(analysis)):
            continue
        try:
            if rows := _rows(session, analysis, params, name, most):
                found.append(ScreenTable(title, _COLUMNS, rows))
        except NotComputed as error:
            found.append(ScreenTable(title, _COLUMNS, [], error.words))
    return found


def _statement(session: Session, folder: str) -> Statement | None:
    """That it is empty, in words: rules can only say of each thing that it is inconclusive."""
    recording = session.recording
    families = {
        state["family"]: state.get("missing")
        for capture in recording.captures
        for state in capture.get("families") or []
    }
    # A command has made one, or its recording is not complete.
    is_whole = recording.manifest["complete"] and not families.get("calls")
    is_whole = is_whole and not recording.manifest.get("command")
    if not is_whole or "calls" not in recording.tables or recording.rows("calls"):
        return None
    english = (
        "The recording contains no system calls, so no rule applies. "
        "Was the right process recorded, and long enough?"
    )
    japanese = (
        "この記録にはシステムコールがないため、判定できません。対象のプロセスと記録時間を確認してください。"
    )
    return Statement((english, japanese), [f"sysdock info {shlex.quote(folder)}"])


def _rows(
    session: Session, analysis: str, params: dict[str, Any], name: str, most: int
) -> list[tuple[str, tuple[str, str, str, str]]]:
    """The first rows of an analysis: its column `name`, calls, errors, time and bytes."""
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
        for row in session.run(analysis, params).dicts(most)
    ]


def _totals(session: Session) -> dict[str, Total]:
    [values] = session.dicts(_TOTALS_SQL)
    return {name: Total(values[name], (en, ja), unit) for name, (en, ja, unit) in _TOTALS.items()}


SECTION = Section(
    about="calls",
    order=10,
    question="io/files",
    needs=("calls",),
    title=("calls of programs", "プログラムのシステムコール"),
    coverage=understood,
    screen=_screen,
    totals=_totals,
    statement=_statement,
    compared=(
        Compared("calls", ("Calls by change of time", "時間の変化が大きい呼び出し"), _CALLS_SQL),
        Compared("files", ("Files by change of time", "時間の変化が大きいファイル"), _FILES_SQL),
    ),
    of_a_command=True,
)
