"""The text form of `sysdock info`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sysdock.analysis.description import start_time
from sysdock.analysis.writing import table_lines
from sysdock.library import Column
from sysdock.text import human_bytes, human_ns, percent, printable

if TYPE_CHECKING:
    from sysdock.recording import Recording


_KINDS = {"calls": "calls of programs", "scan": "scan of a file system", "experiment": "experiment"}


def info_lines(recording: Recording, described: dict[str, Any]) -> list[str]:
    """What, when, where, how completely; then tables, issues and the environment."""
    clock = described["clock"]
    lines = [
        _pair("kind", _KINDS[recording.kind]),
        *_program(recording, described),
        _pair("host", described["host"] or "unknown"),
        _pair("started", start_time(recording) or _no_start(described)),
        _pair("duration", _duration(recording)),
        *([_pair("ended", _ended(described))] if recording.kind == "calls" else []),
        _pair("recorded by", f"{described['recorder']} {' '.join(described['options'] or [])}".rstrip()),
    ]
    lines += [_pair(head, text) for head, text in _families(described)]
    if clock.get("note"):
        lines.append(_pair("clock", clock["note"]))
    lines += [
        _pair("from", f"{source.get('path')}  {human_bytes(source.get('bytes'))}")
        # What a recorder wrote for itself is gone by now.
        for source in ([] if recording.recorders_own else described["sources"] or [])
    ]
    lines.append(_pair("complete", _completeness(described)))
    lines += [_pair(head, text) for head, text in _coverage(recording, described)]
    lines += [_pair("DAMAGED", text) for text in described["damage"]]
    return [*lines, "", *_tables(described), *_issues(described), *_environment(described)]


def _program(recording: Recording, described: dict[str, Any]) -> list[str]:
    """What is known of the program; that nothing is known matters only where there was one."""
    return [
        _pair(name, described[name] or "unknown")
        for name in ("command", "directory")
        if described[name] or recording.kind == "calls"
    ]


def _pair(name: str, text: object) -> str:
    return f"{name:<13}{printable(str(text))}"


def _duration(recording: Recording) -> str:
    # Without any table nothing was written but that a recording began.
    known = recording.has_clock and recording.tables
    return human_ns(recording.manifest["duration_ns"]) if known else "unknown"


def _no_start(described: dict[str, Any]) -> str:
    known = described["clock"].get("kind") not in ("relative", "order")
    return "unknown" if known else "unknown: the clock of the log knows no date"


def _families(described: dict[str, Any]) -> list[tuple[str, str]]:
    """What a recorder of the kernel recorded beside calls and processes, and what it did not."""
    states = described["families"] or []
    recorded = ", ".join(str(state.get("family")) for state in states if not state.get("missing"))
    missing = "; ".join(
        f"{state.get('family')} ({state['missing']})" for state in states if state.get("missing")
    )
    return [pair for pair in (("families", recorded), ("not recorded", missing)) if pair[1]]


def _ended(described: dict[str, Any]) -> str:
    if described["exit_signal"]:
        return f"killed by {described['exit_signal']}"
    if described["exit_code"] is not None:
        return f"exit status {described['exit_code']}"
    return "unknown"


def _coverage(recording: Recording, described: dict[str, Any]) -> list[tuple[str, str]]:
    """How much of what there was is in the tables: of a log, of the kernel's events, of a file system."""
    if recording.kind == "experiment":
        # It measured; there was no input to understand.
        return []
    if recording.kind == "scan":
        systems = described["file_systems"]
        scanned = [pair for system in systems for pair in _of_scan(system, described["tables"])]
        return scanned or [("scanned", "unknown: the recording has no row of `file_systems`")]
    understood, total = described["lines_understood"], described["lines_total"]
    lost = f"{described['lost_events']:,} events" if described["lost_events"] else "no events"
    return [
        (recording.unit, f"{understood:,} of {total:,} understood ({percent(understood, total)})"),
        ("lost", lost),
    ]


def _of_scan(system: dict[str, Any], tables: dict[str, Any]) -> list[tuple[str, str]]:
    part = "all of it" if system["whole"] else "a part of it"
    size, place = human_bytes(system["size_bytes"]), system["mount_point"] or "not mounted"
    read = system["files"] - system["unread_files"]
    return [
        ("scanned", f"{system['fs_type']} on {system['source']} ({place}), {size}, {part}"),
        ("method", f"{system['method']}: {system['reason']}"),
        ("files", f"{read:,} of {system['files']:,} read ({percent(read, system['files'])})"),
        ("extents", f"{tables.get('extents', {}).get('rows', 0):,}"),
    ]


def _completeness(described: dict[str, Any]) -> str:
    if described["ended_by"] == "running" and not described["complete"]:
        return "NO: still running, or the recorder was killed"
    return "yes" if described["complete"] else f"NO, ended by: {described['ended_by']}"


def _text(*names: str) -> list[Column]:
    return [Column(name, "VARCHAR", None, "") for name in names]


def _tables(described: dict[str, Any]) -> list[str]:
    columns = [
        *_text("table"),
        Column("rows", "BIGINT", None, ""),
        Column("on disk", "BIGINT", "B", ""),
        Column("lost", "BIGINT", None, ""),
    ]
    rows = [
        (name, table["rows"], table["bytes"], table["lost"]) for name, table in described["tables"].items()
    ]
    return [*table_lines(columns, rows), ""]


def _issues(described: dict[str, Any]) -> list[str]:
    if not described["issues"]:
        return ["no issues in the input", ""]
    columns = [
        *_text("issue"),
        Column("number", "BIGINT", None, ""),
        *_text("line understood", "first places"),
    ]
    rows = [
        (entry["issue"], entry["rows"], "yes" if entry["understood"] else "no", ", ".join(entry["places"]))
        for entry in described["issues"]
    ]
    return [*table_lines(columns, rows), ""]


def _environment(described: dict[str, Any]) -> list[str]:
    rows = [
        (entry["section"], entry["name"], entry["value"] or "unknown", entry["source"])
        for entry in described["environment"]
    ]
    return table_lines(_text("section", "name", "value", "source"), rows) if rows else []
