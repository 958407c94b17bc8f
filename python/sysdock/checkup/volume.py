"""Step 2, volume: what a recording moved, against the sizes of the files."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sysdock.checkup import FINDING, OK
from sysdock.checkup.answers import Question, answers
from sysdock.checkup.statement import Name, Part, Sentence, all_sentences
from sysdock.errors import UserError
from sysdock.sentences import fact

if TYPE_CHECKING:
    from sysdock.analysis import Session

TABLE = "file_sizes"
_QUESTION = Question(
    "volume",
    "checkup/transferred_volume",
    columns={"subject": "path", "value": "moved", "limit_value": "size"},
    names={"subject": "path", "host": "host"},
)
# Columns about one file; all others are about the files together.
_OF_ONE_FILE = ("path", "moved", "size", "direction")
_MOST_NAMED = 3
_MOST_FILES = 100_000
# Files with what was read and written, the most first; a copy is both.
_FILES = """
WITH moved AS (
    SELECT path_id, transferred_bytes AS bytes FROM calls WHERE class IN ('read', 'write', 'copy')
    UNION ALL
    SELECT to_path_id, transferred_bytes FROM calls WHERE class = 'copy'
)
SELECT p.path, CAST(sum(m.bytes) AS BIGINT) AS bytes
FROM moved AS m JOIN paths AS p ON p.path_id = m.path_id
WHERE p.kind = 'file' AND m.bytes > 0
GROUP BY p.path ORDER BY bytes DESC, p.path
"""


@dataclass(frozen=True)
class Files:
    """Files of a recording: `used` with what was moved, the most first; `rows` of `file_sizes` here and now.

    `only_named`: only some were named, and `used` holds those. `missing` of them are not in the recording.
    """

    used: list[tuple[str, int]]
    rows: list[dict[str, Any]]
    only_named: bool
    missing: list[str]


def files_of(session: Session, named: Sequence[Path] = ()) -> Files:
    """Checks the files of a recording; with `named` only those, and what lies in those folders."""
    used = session.fetch(_FILES) if "calls" in session.recording.tables else []
    wanted, missing = _wanted(named), []
    if wanted is not None:
        recorded = {path for path, _ in used}
        missing = sorted({str(_absolute(file)) for file in named if not file.is_dir()} - recorded)
        used = [(path, moved) for path, moved in used if path in wanted]
    host = session.recording.manifest.get("host")
    elsewhere = wanted is None and host is not None and host != socket.gethostname()
    end_s = (session.recording.started_ns + session.recording.manifest["duration_ns"]) / 1e9
    looked_at = [] if elsewhere else [path for path, _ in used[:_MOST_FILES]]
    rows = [
        {"path": path, "size_bytes": _size(path, end_s), "named": wanted is not None}
        for path in looked_at + missing
    ]
    return Files(used, rows, wanted is not None, missing)


def volume_part(session: Session, files: Files) -> Part:
    """The answer of the rule for the files with sizes in `session`, in addition to the recording."""
    limits = {"only_named": files.only_named, "here": socket.gethostname()}
    rows = answers(session, _QUESTION, limits)
    first = rows[0]
    if not first.values.get("files"):
        return first
    gone = [
        row["path"] for row in files.rows if row["size_bytes"] is None and row["path"] not in files.missing
    ]
    values = {key: value for key, value in first.values.items() if key not in _OF_ONE_FILE} | {
        "systems": _by_mount(session, files),
        "gone_names": [Name("path", path) for path in gone[:_MOST_NAMED]],
        "missing_names": [Name("path", path) for path in files.missing],
        "over": [_stated(row) for row in rows[:_MOST_NAMED]] if first.status == FINDING else [],
    }
    sentences: list[Sentence] = [_TOTALS]
    sentences += [_SIZES] if files.rows else []
    sentences += [_GONE] if gone else []
    sentences += [_NOT_RECORDED] if files.missing else []
    sentences += [_OVER] if first.status == FINDING else all_sentences(first.sentence)
    return replace(first, sentence=tuple(sentences), values=values)


_TOTALS = fact("checkup/read_written")
_SIZES = fact("checkup/sizes_known_them_transferred")
_GONE = fact("checkup/missing_or_changed_after")
_NOT_RECORDED = fact("checkup/not_recording")
_OVER = fact("checkup/transferred_more_than_size")
_STATED = {
    "read": fact("checkup/read_size"),
    "write": fact("checkup/written_size"),
}


def _stated(row: Part) -> Part:
    """A file that was moved more than its size, among others."""
    values = {key: row.values[key] for key in _OF_ONE_FILE}
    return Part("file", row.status, _STATED[values["direction"]], None, values)


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))


def _wanted(files: Sequence[Path]) -> set[str] | None:
    """Paths of the files, and of those in the folders, as given and with links resolved; None: all."""
    if not files:
        return None
    found = set()
    for path in files:
        if not path.exists():
            raise UserError("no such file", "name files that the job has to read or write", f"--files {path}")
        inside = path.rglob("*") if path.is_dir() else [path]
        for file in inside:
            if file.is_file():
                found |= {str(_absolute(file)), os.path.realpath(file)}
    return found


def _size(path: str, end_s: float) -> int | None:
    """The size of a plain file that is as it was when the recording ended."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode) or status.st_mtime > end_s + 1:
        return None
    return status.st_size


def _by_mount(session: Session, files: Files) -> list[Part]:
    """Volume of each file system, the largest first."""
    mounts = []
    if "environment" in session.recording.tables:
        mounts = [name for (name,) in session.fetch("SELECT name FROM environment WHERE section = 'mount'")]
    mounts = sorted({name.rstrip("/") + "/" for name in mounts}, key=lambda name: -len(name))
    volumes: dict[str, int] = {}
    for path, moved in files.used:
        mount = next((name for name in mounts if path.startswith(name)), "")
        volumes[mount] = volumes.get(mount, 0) + moved
    most = sorted(volumes, key=lambda name: -volumes[name])[:_MOST_NAMED]
    return [
        Part(
            "mount",
            OK,
            fact("checkup/mount" if mount else "checkup/file_systems_not_known"),
            None,
            {"mount": Name("path", mount.rstrip("/") or "/"), "bytes": volumes[mount]},
        )
        for mount in most
    ]
