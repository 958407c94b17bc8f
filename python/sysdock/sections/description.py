"""Describes a recording: what, when, where, how completely."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sysdock.analysis.marks import marks_of
from sysdock.errors import NotComputed
from sysdock.sections import Statement, contents, section_of
from sysdock.sections.coverage import is_loss_known
from sysdock.sections.scan import file_systems
from sysdock.sentences import say

if TYPE_CHECKING:
    from sysdock.analysis.session import Session
    from sysdock.recording import Recording

_COPIED = (
    "command",
    "host",
    "started_ns",
    "duration_ns",
    "complete",
    "directory",
    "tool",
    "exit_code",
    "exit_signal",
)
_FIRST_LINES = 3


def describe(session: Session) -> dict[str, Any]:
    """One object with the contents of recording.json, the environment, and the issues of the import.

    `captures`: as recording.json has them; `lines_total`, `lines_understood`, `lost_events`: their sums, in
    their own units. `loss_known`: whether `lost_events` is all that was lost. `kind`: what they set out to
    record. `file_systems`: rows of that table, of a scan.
    `tables`: per table `rows`, `lost`, `bytes` on disk.
    `environment`: rows of that table. `marks`: moments, `at_ns` after the start, and `text`. `issues`: per
    kind the number of rows, whether the line itself was understood, and the first places. `damage`: parts
    that are missing or have a wrong size.
    `not_computed`: by key why it is null: the engine could not compute it.
    """
    recording = session.recording
    described: dict[str, Any] = {"kind": ", ".join(contents(recording.captures))}
    described |= {name: recording.manifest.get(name) for name in _COPIED} | _of_captures(session)
    described["tables"] = {
        name: {
            "rows": recording.rows(name),
            "lost": recording.lost(name),
            "bytes": recording.bytes_on_disk(name),
        }
        for name in recording.tables
    }
    described["damage"] = session.views.damage()
    # The issues of a damaged recording are unknown.
    issues_known: list[dict[str, Any]] | None = None if described["damage"] else []
    described |= {
        "has_exits": None,
        "file_systems": [],
        "environment": [],
        "marks": [],
        "issues": issues_known,
    }
    described["not_computed"] = {}
    for name, read in _READERS.items() if not described["damage"] else ():
        try:
            described[name] = read(session)
        except NotComputed as error:
            described[name], described["not_computed"][name] = None, say(error.words, "en")
    return described


def _of_captures(session: Session) -> dict[str, Any]:
    """Totals over all captures, and what the first one says of itself."""
    recording = session.recording
    first = recording.captures[0]
    return {
        "lines_total": sum(capture["total"] for capture in recording.captures),
        "lines_understood": sum(capture["understood"] for capture in recording.captures),
        "lost_events": recording.lost_events,
        "loss_known": is_loss_known(recording.captures),
        "ended_by": recording.ended_by,
        "recorder": ", ".join(capture["recorder"] for capture in recording.captures),
        "options": [word for capture in recording.captures for word in capture.get("options") or []],
        "families": [state for capture in recording.captures for state in capture.get("families") or []],
        "sources": recording.sources,
        "clock": first["clock"],
        "captures": recording.captures,
    }


def _has_exits(session: Session) -> bool | None:
    """Whether the end of every process was seen; None where no process was."""
    if "processes" not in session.recording.tables:
        return None
    [(seen,)] = session.fetch("SELECT coalesce(bool_and(end_ts_ns IS NOT NULL), true) FROM processes")
    return bool(seen)


def environment(session: Session) -> list[dict[str, Any]]:
    """The rows of `environment`; none where the recording has no such table."""
    if "environment" not in session.recording.tables:
        return []
    return session.dicts("SELECT section, name, value, source FROM environment")


def issues(session: Session) -> list[dict[str, Any]]:
    """Issues per kind, the most frequent first: `issue`, `rows`, `understood`, and the first `places`."""
    if "import_issues" not in session.recording.tables or not session.recording.rows("import_issues"):
        return []
    counted = session.fetch(
        "SELECT issue, count(*) AS rows, bool_and(understood) FROM import_issues "
        "GROUP BY issue ORDER BY rows DESC, issue"
    )
    places = session.fetch(
        "SELECT issue, source, line FROM (SELECT issue, source, line, row_number() OVER "
        "(PARTITION BY issue ORDER BY source, line) AS number FROM import_issues) WHERE number <= $most "
        "ORDER BY issue, number",
        {"most": _FIRST_LINES},
    )
    first: dict[str, list[str]] = {}
    for issue, source, line in places:
        first.setdefault(issue, []).append(f"{source}:{line}" if line else source)
    return [
        {"issue": issue, "rows": rows, "understood": understood, "places": first[issue]}
        for issue, rows, understood in counted
    ]


# Tables that `describe` reads.
def marks(session: Session) -> list[dict[str, Any]]:
    """The events that made a flight recorder write the recording, by time."""
    return [{"at_ns": one.at_ns, "text": say(one.what, "en")} for one in marks_of(session)]


_READERS: dict[str, Callable[[Session], Any]] = {
    "has_exits": _has_exits,
    "file_systems": file_systems,
    "environment": environment,
    "marks": marks,
    "issues": issues,
}


def statements(session: Session, folder: str) -> list[Statement]:
    """Statements of sections for which no rule applies. `folder`: the recording, as commands name it."""
    sections = dict.fromkeys(map(section_of, session.recording.captures))
    found = [section.statement(session, folder) for section in sections if section and section.statement]
    return [statement for statement in found if statement]


def start_time(recording: Recording) -> str | None:
    """When the recording began, as text; None where its clock knows no date."""
    kind = recording.clock.get("kind")
    # A recorder that was killed has not yet written when it began.
    if kind in ("relative", "order") or not recording.started_ns:
        return None
    try:
        stamp = datetime.datetime.fromtimestamp(recording.started_ns // 1_000_000_000, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return None
    local = stamp.astimezone()
    if kind == "time_of_day":
        given = any(each.get("code") == "clock/date_given" for each in recording.clock.get("note") or [])
        return local.strftime(f"%Y-%m-%d %H:%M:%S (date {'given' if given else 'inferred'})")
    return local.strftime("%Y-%m-%d %H:%M:%S %z")
