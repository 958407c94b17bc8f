"""The text form of `sysdock info`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sysdock.analysis.marks import Mark
from sysdock.analysis.writing import table_lines
from sysdock.errors import UserError
from sysdock.library import Column
from sysdock.screen.color import painted_head
from sysdock.sections import Capture, InfoLine, all_sections, contents, section_of
from sysdock.sections.coverage import understood
from sysdock.sections.description import start_time
from sysdock.sentences import Words, fact, facts_from_json, facts_of, languages, say
from sysdock.text import human_bytes, human_ns, printable

if TYPE_CHECKING:
    from sysdock.analysis import Session
    from sysdock.recording import Recording


STATUSES = {"DAMAGED": "finding", "UNKNOWN": "unknown", "NO": "note"}


def info_lines(session: Session, described: dict[str, Any]) -> list[str]:
    """Subject, time, place and completeness; then tables, issues and the environment."""
    recording, clock = session.recording, described["clock"]
    captures = recording.captures
    found = [section for capture in captures if (section := section_of(capture))]
    of_a_command = any(section.of_a_command for section in found) or not found
    lines = [
        _pair("kind", ", ".join(_titles(captures))),
        *_program(described, of_a_command),
        _pair("host", described["host"] or "unknown"),
        _pair("started", start_time(recording) or _no_start(described)),
        _pair("duration", _duration(recording)),
        *([_pair("ended", _ended(described))] if of_a_command else []),
    ]
    for capture in captures:
        lines.append(_pair("recorded by", " ".join([capture["recorder"], *(capture.get("options") or [])])))
        lines += [_pair(head, text) for head, text in _families(capture)]
    if clock.get("note"):
        lines.append(_pair("clock", _said(facts_of(clock["note"]))))
    lines += [
        _pair("from", f"{source.get('path')}  {human_bytes(source.get('bytes'))}")
        for source in recording.sources
    ]
    lines += [_pair("mark", _said(Mark(one["at_ns"], one["text"]).words)) for one in described["marks"] or []]
    lines.append(_pair("complete", _completeness(described)))
    lines += [_pair(_said(line.name), _said(line.value)) for line in _coverage(session)]
    lines += [_pair("DAMAGED", text) for text in described["damage"]]
    lines += [_pair("UNKNOWN", f"{what} {why}") for what, why in described["not_computed"].items()]
    return [*lines, "", *_tables(described), *_issues(described), *_environment(described)]


def _said(words: Words) -> str:
    return say(words, languages()[0])


def _titles(captures: Sequence[Capture]) -> list[str]:
    """Titles of the captures; a capture without a section has the name of its first family."""
    titles = {section.about: _said(section.title) for section in all_sections()}
    return [titles.get(about, about) for about in contents(captures)]


def _program(described: dict[str, Any], of_a_command: bool) -> list[str]:
    """Facts about the program; missing ones are mentioned only if there was a program."""
    return [
        _pair(name, described[name] or "unknown")
        for name in ("command", "directory")
        if described[name] or of_a_command
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


def _families(capture: Capture) -> list[tuple[str, str]]:
    """Families that a capture recorded in addition to its first one, and families that are missing, the
    first included.
    """
    families = capture.get("families") or []
    recorded = ", ".join(state["family"] for state in families[1:] if not state.get("missing"))
    missing = "; ".join(
        f"{state['family']} ({_said(facts_of(state['missing']))})"
        for state in families
        if state.get("missing")
    )
    return [pair for pair in (("families", recorded), ("not recorded", missing)) if pair[1]]


def _ended(described: dict[str, Any]) -> str:
    if described["exit_signal"]:
        return f"killed by {described['exit_signal']}"
    if described["exit_code"] is not None:
        return f"exit status {described['exit_code']}"
    return "unknown"


def _coverage(session: Session) -> list[InfoLine]:
    """How much of the input is in the tables, by capture."""
    facts: list[InfoLine] = []
    for capture in session.recording.captures:
        section = section_of(capture)
        try:
            facts += section.coverage(session, capture) if section else understood(session, capture)
        except UserError as error:
            # Only a section reads tables.
            title = section.title if section else fact("screen/share_understood")
            facts.append(InfoLine(title, fact("screen/unknown_because", why=error.fact)))
    return facts


def _completeness(described: dict[str, Any]) -> str:
    if described["ended_by"] == "running" and not described["complete"]:
        return "NO: still running, or the recorder was killed"
    return "yes" if described["complete"] else f"NO, ended by: {described['ended_by']}"


def _text(*names: str) -> list[Column]:
    return [Column(name, "VARCHAR", None, "") for name in names]


def _table(columns: list[Column], rows: list[tuple[Any, ...]]) -> list[str]:
    return painted_head(table_lines(columns, rows), sys.stdout)


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
    return [*_table(columns, rows), ""]


def _issues(described: dict[str, Any]) -> list[str]:
    if described["issues"] is None:
        return []
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
    return [*_table(columns, rows), ""]


def _environment(described: dict[str, Any]) -> list[str]:
    rows = [
        (row["section"], row["name"], _said(facts_from_json(row["value"] or "unknown")), row["source"])
        for row in described["environment"] or []
    ]
    return _table(_text("section", "name", "value", "source"), rows) if rows else []
