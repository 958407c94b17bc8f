"""Where the files of a file system lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sysdock.errors import NotComputed
from sysdock.sections.section import Capture, Fact, ScreenTable, Section, Total, Words
from sysdock.text import human_bytes, human_count, percent

if TYPE_CHECKING:
    from sysdock.analysis import Session

# Below this share of files that could be read, what a rule did not see may well be in the others.
_ENOUGH_READ = 0.99
_PLACES = {"inodes", "extents", "layout", "free_extents"}


def file_systems(session: Session) -> list[dict[str, Any]]:
    """The rows of `file_systems`; none where the recording has no such table."""
    if "file_systems" not in session.recording.tables or session.recording.damage():
        return []
    return session.dicts("SELECT * FROM file_systems")


def _coverage(session: Session, _capture: Capture) -> Sequence[Fact]:
    facts = [fact for system in file_systems(session) for fact in _of_system(session, system)]
    unknown = "unknown: the recording has no row of `file_systems`", "不明: `file_systems` に行がありません"
    return facts or [Fact(("scanned", "走査"), unknown)]


def _of_system(session: Session, system: dict[str, Any]) -> list[Fact]:
    part = ("all of it", "全体") if system["whole"] else ("a part of it", "一部")
    size, place = human_bytes(system["size_bytes"]), system["mount_point"] or "not mounted"
    read, files = system["files"] - system["unread_files"], system["files"]
    extents = session.recording.rows("extents") if "extents" in session.recording.tables else 0
    what = f"{system['fs_type']} on {system['source']} ({place}), {size}"
    method, share = f"{system['method']}: {system['reason']}", percent(read, files)
    return [
        Fact(("scanned", "走査"), (f"{what}, {part[0]}", f"{what}、{part[1]}")),
        Fact(("method", "方法"), (method, method)),
        Fact(
            ("files", "ファイル"),
            (f"{read:,} of {files:,} read ({share})", f"{files:,} のうち {read:,} を読み取り ({share})"),
        ),
        Fact(("extents", "エクステント"), (f"{extents:,}", f"{extents:,}")),
    ]


def _screen(session: Session) -> Sequence[ScreenTable]:
    title = ("File system", "ファイルシステム")
    columns = (("files", "ファイル"), ("not read", "読めないもの"), ("size", "サイズ"), ("free", "空き"))
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


_TOTALS: dict[str, tuple[str, str, str | None]] = {
    "files": ("files", "ファイル", None),
    "allocated_bytes": ("space used by files", "ファイルの占める領域", "B"),
    "free_bytes": ("free space", "空き領域", "B"),
    "extents": ("extents", "エクステント", None),
    "fragments": ("fragments", "断片", None),
    "fragmented_files": ("fragmented files", "断片化したファイル", None),
}


def _totals(session: Session) -> dict[str, Total]:
    """Sums over the file systems that were scanned, from the analysis disk/summary."""
    rows = session.run("disk/summary").dicts()
    return {
        name: Total(sum(row[name] or 0 for row in rows), (english, japanese), unit)
        for name, (english, japanese, unit) in _TOTALS.items()
    }


def _doubt(session: Session, tables: set[str]) -> Words | None:
    """What a scan could not read: blocks, and files."""
    if not _PLACES & tables:
        return None
    if "import_issues" in session.recording.tables:
        [(kinds,)] = session.fetch("SELECT count(*) FROM import_issues WHERE NOT understood")
        if kinds:
            return (
                "No findings, but parts of the file system could not be read or parsed.",
                "見つかったものはありませんが、ファイルシステムの一部を読めなかったか、解釈できませんでした。",
            )
    [(files, unread)] = session.fetch("SELECT sum(files), sum(unread_files) FROM file_systems")
    if not files or (files - unread) / files >= _ENOUGH_READ:
        return None
    share = percent(files - unread, files)
    return (
        f"No findings, but only {share} of the files could be read.",
        f"見つかったものはありませんが、読めたのはファイルの {share} だけです。",
    )


SECTION = Section(
    about="scan",
    order=50,
    question="disk/files",
    needs=("file_systems",),
    title=("scan of a file system", "ファイルシステムの走査"),
    coverage=_coverage,
    screen=_screen,
    totals=_totals,
    doubt=_doubt,
    instead="`sysdock disk diff A B` compares two scans",
)
