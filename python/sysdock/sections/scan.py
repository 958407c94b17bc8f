"""The location of the files of a file system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sysdock.errors import NotComputed
from sysdock.sections.section import Capture, InfoLine, ScreenTable, Section, Total
from sysdock.sentences import Words, fact, facts_from_json
from sysdock.text import human_bytes, human_count, percent

if TYPE_CHECKING:
    from sysdock.analysis import Session


def file_systems(session: Session) -> list[dict[str, Any]]:
    """The rows of `file_systems`; none where the recording has no such table."""
    if "file_systems" not in session.recording.tables or session.recording.damage():
        return []
    return session.dicts("SELECT * FROM file_systems")


def _coverage(session: Session, _capture: Capture) -> Sequence[InfoLine]:
    lines = [line for system in file_systems(session) for line in _of_system(session, system)]
    unknown = fact("sections/nothing_scanned")
    return lines or [InfoLine(fact("sections/scanned"), unknown)]


def _of_system(session: Session, system: dict[str, Any]) -> list[InfoLine]:
    part = fact("sections/all") if system["whole"] else fact("sections/part")
    size, place = human_bytes(system["size_bytes"]), system["mount_point"] or "not mounted"
    read, files = system["files"] - system["unread_files"], system["files"]
    extents = session.recording.rows("extents") if "extents" in session.recording.tables else 0
    what = f"{system['fs_type']} on {system['source']} ({place}), {size}"
    method = fact(
        "sections/method_and_reason", method=system["method"], reason=facts_from_json(system["reason"])
    )
    share = percent(read, files)
    return [
        InfoLine(fact("sections/scanned"), fact("sections/scanned_part", what=what, part=part)),
        InfoLine(fact("sections/method"), method),
        InfoLine(
            fact("sections/files"),
            fact("sections/read", read=read, files=files, share=share),
        ),
        InfoLine(fact("sections/extents"), f"{extents:,}"),
    ]


def _screen(session: Session) -> Sequence[ScreenTable]:
    title = fact("sections/file_system_title")
    columns = (
        fact("sections/files"),
        fact("sections/not_read"),
        fact("sections/size"),
        fact("sections/free"),
    )
    try:
        systems = file_systems(session)
    except NotComputed as error:
        return [ScreenTable(title, columns, [], error.words)]
    rows = [
        (
            f"{system['fs_type']} {system['mount_point'] or system['source']}",
            (
                human_count(system["files"]),
                human_count(system["unread_files"]),
                human_bytes(system["size_bytes"]),
                human_bytes(system["free_bytes"]),
            ),
        )
        for system in systems
    ]
    return [ScreenTable(title, columns, rows)] if rows else []


_TOTALS: dict[str, tuple[Words, str | None]] = {
    "files": (fact("sections/files"), None),
    "allocated_bytes": (fact("sections/space_used_files"), "B"),
    "free_bytes": (fact("sections/free_space"), "B"),
    "extents": (fact("sections/extents"), None),
    "fragments": (fact("sections/fragments"), None),
    "fragmented_files": (fact("sections/fragmented_files"), None),
}


def _totals(session: Session) -> dict[str, Total]:
    """Sums over the file systems that were scanned, from the analysis disk/summary."""
    rows = session.run("disk/summary").dicts()
    return {
        name: Total(sum(row[name] or 0 for row in rows), words, unit)
        for name, (words, unit) in _TOTALS.items()
    }


SECTION = Section(
    about="scan",
    order=50,
    question="disk/files",
    needs=("file_systems",),
    title=fact("sections/scan_file_system"),
    coverage=_coverage,
    screen=_screen,
    totals=_totals,
    instead="`sysdock disk diff A B` compares two scans",
)
