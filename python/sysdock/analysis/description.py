"""Describes a recording: what, when, where, how completely."""

from __future__ import annotations

import datetime
import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sysdock.analysis.session import Session
    from sysdock.library import Analysis
    from sysdock.recording import Recording

_COPIED = (
    "command",
    "host",
    "started_ns",
    "duration_ns",
    "lines_total",
    "lines_understood",
    "lost_events",
    "complete",
    "ended_by",
    "directory",
    "recorder",
    "tool",
    "options",
    "families",
    "sources",
    "clock",
    "has_exits",
    "exit_code",
    "exit_signal",
)
_FIRST_LINES = 3


def describe(session: Session) -> dict[str, Any]:
    """One object with what recording.json says, the environment, and the issues of the import.

    `kind`: what it is a recording of. `file_systems`: rows of that table, of a scan. `tables`: per table
    `rows`, `lost`, `bytes` on disk.
    `environment`: rows of that table. `issues`: per kind the number of rows, whether the line itself was
    understood, and the first places. `damage`: parts that are missing or have a wrong size.
    """
    recording = session.recording
    described = {"kind": recording.kind} | {name: recording.manifest.get(name) for name in _COPIED}
    described["tables"] = {
        name: {
            "rows": recording.rows(name),
            "lost": recording.lost(name),
            "bytes": recording.bytes_on_disk(name),
        }
        for name in recording.tables
    }
    described["file_systems"] = _file_systems(session)
    described["damage"] = recording.damage()
    described["environment"] = described["issues"] = []
    if not described["damage"]:
        described["environment"] = _environment(session)
        described["issues"] = issues(session)
    return described


def _file_systems(session: Session) -> list[dict[str, Any]]:
    """What was scanned; none for a recording of programs."""
    if "file_systems" not in session.recording.tables or session.recording.damage():
        return []
    result = session.execute("SELECT * FROM file_systems")
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def _environment(session: Session) -> list[dict[str, Any]]:
    if "environment" not in session.recording.tables:
        return []
    names = ("section", "name", "value", "source")
    rows = session.fetch(f"SELECT {', '.join(names)} FROM environment")
    return [dict(zip(names, row, strict=True)) for row in rows]


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


def of_an_experiment(session: Session, folder: str) -> tuple[str, str, list[str]] | None:
    """That it is of an experiment, in English and Japanese, and the commands that show its results.

    None for other kinds. `folder`: what the commands call the recording. Who looks for findings must hear
    it: rules are about programs and disks, and that they are silent is no pass.
    """
    if session.recording.kind != "experiment":
        return None
    analyses = [analysis for analysis in session.library.analyses() if _is_of_results(session, analysis)]
    shown = [f"sysdock show {shlex.quote(folder)} {analysis.id}" for analysis in analyses]
    if not shown:
        english = "This is the recording of an experiment, and it has no results."
        return english, "これは実験の記録ですが、結果がありません。", []
    return (
        "This is the recording of an experiment: rules do not judge it. Its results:",
        "これは実験の記録で、ルールの対象ではありません。結果は次のコマンドで表示できます:",
        shown,
    )


def _is_of_results(session: Session, analysis: Analysis) -> bool:
    """Whether an analysis reads what only experiments record, and this one has it."""
    recorders = {session.library.table(name).recorder for name in analysis.needs}
    return "experiment" in recorders and not session.missing(analysis)


def start_time(recording: Recording) -> str | None:
    """When the recording began, as text; None where its clock knows no date."""
    kind = recording.manifest["clock"].get("kind")
    # A recorder that was killed has not yet written when it began.
    if kind in ("relative", "order") or not recording.started_ns:
        return None
    try:
        stamp = datetime.datetime.fromtimestamp(recording.started_ns // 1_000_000_000, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return None
    local = stamp.astimezone()
    if kind == "time_of_day":
        given = "given" in (recording.manifest["clock"].get("note") or "")
        return local.strftime(f"%Y-%m-%d %H:%M:%S (date {'given' if given else 'inferred'})")
    return local.strftime("%Y-%m-%d %H:%M:%S %z")
