"""System calls of programs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sysdock.errors import NotComputed
from sysdock.sections import where
from sysdock.sections.coverage import understood
from sysdock.sections.section import Compared, ScreenTable, Section, Statement, Total
from sysdock.sentences import Words, fact
from sysdock.text import human_bytes, human_count, human_ns

if TYPE_CHECKING:
    from sysdock.analysis import Session

# Rows of the first screen, and the analyses they come from.
_CALLS, _FILES = 3, 2
_COLUMNS: tuple[Words, Words, Words, Words] = (
    fact("sections/calls"),
    fact("sections/errors"),
    fact("sections/time"),
    fact("sections/bytes"),
)

_TOTALS_SQL = """SELECT t.elapsed_ns, t.calls, t.all_ns, t.busy_ns, t.data_ns, t.metadata_ns, t.sync_ns,
    t.data_calls, t.data_bytes, t.metadata_calls,
    (SELECT count(*) FROM processes WHERE task_id = process_id) AS processes,
    (SELECT CAST(sum(calls) AS BIGINT) FROM call_use WHERE errno IS NOT NULL) AS errors
FROM totals AS t"""
_TOTALS: dict[str, tuple[Words, str | None]] = {
    "elapsed_ns": (fact("sections/elapsed_time"), "ns"),
    "all_ns": (fact("sections/time_in_calls"), "ns"),
    "busy_ns": (fact("sections/time_without_waits"), "ns"),
    "data_ns": (fact("sections/time_reading_writing_files"), "ns"),
    "metadata_ns": (fact("sections/time_metadata"), "ns"),
    "sync_ns": (fact("sections/time_waiting_disk"), "ns"),
    "calls": (fact("sections/call_count"), None),
    "errors": (fact("sections/calls_failed"), None),
    "data_calls": (fact("sections/reads_writes_files"), None),
    "metadata_calls": (fact("sections/metadata_calls"), None),
    "data_bytes": (fact("sections/bytes_read_written"), "B"),
    "processes": (fact("sections/processes"), None),
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
        (fact("sections/calls_time"), "io/summary", {}, "call", _CALLS),
        (fact("sections/files_time"), "io/files", {"per_call": False}, "path", _FILES),
    )
    # If the scheduler was recorded, its own section shows this.
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
    """A statement that the recording is empty: rules could only report each thing as inconclusive."""
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
    return Statement(fact("sections/no_calls_recorded"), [f"sysdock info {shlex.quote(folder)}"])


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
    return {name: Total(values[name], words, unit) for name, (words, unit) in _TOTALS.items()}


SECTION = Section(
    about="calls",
    order=10,
    question="io/files",
    needs=("calls",),
    title=fact("sections/calls_programs"),
    coverage=understood,
    screen=_screen,
    totals=_totals,
    statement=_statement,
    compared=(
        Compared("calls", fact("sections/calls_change_time"), _CALLS_SQL),
        Compared("files", fact("sections/files_change_time"), _FILES_SQL),
    ),
    of_a_command=True,
)
