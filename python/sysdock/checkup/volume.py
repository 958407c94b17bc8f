"""Step 2, volume: what a recording moved, against the sizes of the files."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sysdock.checkup import FINDING, OK, UNKNOWN
from sysdock.checkup.statement import Name, Part
from sysdock.errors import UserError

if TYPE_CHECKING:
    from sysdock.analysis import Session

# Read (or written) more than this many times over, and by this much more, is more than the file needs.
TIMES_OVER = 1.5
LEAST_EXCESS = 1 << 20
# Sizes known for less of the volume than this say nothing about the rest.
ENOUGH_KNOWN = 0.95
_MOST_NAMED = 3
_MOST_FILES = 100_000
# Rows of what was read and written, by file; a copy is both.
MOVED = """
    SELECT path_id, transferred_bytes AS read_bytes, 0 AS written_bytes, ts_ns, dur_ns
    FROM calls WHERE class IN ('read', 'copy')
    UNION ALL
    SELECT path_id, 0, transferred_bytes, ts_ns, dur_ns FROM calls WHERE class = 'write'
    UNION ALL
    SELECT to_path_id, 0, transferred_bytes, ts_ns, dur_ns FROM calls WHERE class = 'copy'
"""
_FILES = f"""
WITH moved AS ({MOVED})
SELECT p.path, CAST(sum(m.read_bytes) AS BIGINT) AS read_bytes,
    CAST(sum(m.written_bytes) AS BIGINT) AS written_bytes
FROM moved AS m JOIN paths AS p ON p.path_id = m.path_id
WHERE p.kind = 'file' AND m.read_bytes + m.written_bytes > 0
GROUP BY p.path ORDER BY sum(m.read_bytes + m.written_bytes) DESC, p.path
"""


@dataclass(frozen=True)
class Moved:
    """What was moved from and to one file; `size` on disk now, None where that tells nothing."""

    path: str
    read: int
    written: int
    size: int | None = None


def judge_volume(session: Session, files: Sequence[Path] = ()) -> Part:
    """Bytes of each file against its size now; with `files` only of those, and what lies in those folders."""
    rows = [Moved(*row) for row in session.fetch(_FILES)]
    wanted = _wanted(files)
    missing = []
    if wanted is not None:
        recorded = {row.path for row in rows}
        missing = sorted(
            set(map(str, map(_absolute, (file for file in files if not file.is_dir())))) - recorded
        )
        rows = [row for row in rows if row.path in wanted]
    host = session.recording.manifest.get("host")
    elsewhere = not files and host is not None and host != socket.gethostname()
    end_s = (session.recording.started_ns + session.recording.manifest["duration_ns"]) / 1e9
    sized = [] if elsewhere else [_sized(row, end_s) for row in rows[:_MOST_FILES]]
    known = [row for row in sized if row.size is not None]
    gone = [row for row in sized if row.size is None]
    total = sum(row.read + row.written for row in rows)
    seen = sum(row.read + row.written for row in known)
    over = sorted((row for row in known if _excess(row)), key=lambda row: -_excess(row))
    values: dict[str, Any] = {
        "files": len(rows),
        "read_bytes": sum(row.read for row in rows),
        "written_bytes": sum(row.written for row in rows),
        "known_bytes": seen,
        "sizes_bytes": sum(row.size or 0 for row in known),
        "known": len(known),
        "gone": len(gone),
        "gone_names": [Name("path", row.path) for row in gone[:_MOST_NAMED]],
        "over": [_stated(row) for row in over[:_MOST_NAMED]],
        "over_count": len(over),
        "systems": _by_mount(session, rows),
        "missing": [Name("path", path) for path in missing],
        "host": Name("host", host or ""),
    }
    said = (
        "{files:n} file(s): {read_bytes:B} read, {written_bytes:B} written ({systems}).",
        "{files:n} 個のファイル: 読み {read_bytes:B}、書き {written_bytes:B} ({systems})。",
    )
    if not total:
        said = ("No bytes of files in the recording.", "記録にファイルの読み書きがありません。")
        return Part("volume", UNKNOWN, said, _MAPPED, values)
    if elsewhere:
        said = _more(said, _ELSEWHERE)
        return Part("volume", UNKNOWN, said, _SAY_FILES, values)
    said = _more(said, _SIZES)
    if gone:
        said = _more(said, _GONE)
    if missing:
        said = _more(said, _NOT_RECORDED)
    if over:
        return Part("volume", FINDING, _more(said, _OVER), _READ_ONCE, values)
    if seen < ENOUGH_KNOWN * total or missing:
        return Part("volume", UNKNOWN, said, _SAY_FILES, values)
    return Part("volume", OK, said, None, values)


_MAPPED = (
    "What goes through mapped memory is in no log; see `sysdock show REC processes/mappings`.",
    "マップされたメモリ経由の入出力は記録に現れません。"
    "`sysdock show REC processes/mappings` を見てください。",
)
_ELSEWHERE = (
    "It was recorded on another machine, {host}, so sizes here say nothing.",
    "別の計算機 {host} での記録なので、ここでのファイルの大きさは比べられません。",
)
_SIZES = (
    "Sizes are known for {known:n} of them ({known_bytes:B} moved, {sizes_bytes:B} on disk).",
    "大きさがわかるものは {known:n} 個 (読み書き {known_bytes:B}、ディスク上 {sizes_bytes:B})。",
)
_GONE = (
    "{gone:n} are not there, or were changed after the recording: {gone_names}.",
    "{gone:n} 個は今はないか、記録後に変わっています: {gone_names}。",
)
_NOT_RECORDED = ("Not in the recording: {missing}.", "記録にないもの: {missing}。")
_OVER = (
    "{over_count} moved more than their size: {over}.",
    "{over_count} 個は大きさより多く読み書きされています: {over}。",
)
_READ_ONCE = (
    "Compare with what the job has to read and write. Read a file once and keep what is needed again; "
    "write a result once.",
    "ジョブが本来読み書きする量と比べてください。ファイルは一度だけ読んで必要なものを保持し、"
    "結果は一度だけ書いてください。",
)
_SAY_FILES = (
    "Name the files that the job has to read and write, on the machine where they are: --files PATH.",
    "ジョブが読み書きするはずのファイルを、それがある計算機で --files PATH により与えてください。",
)


def _more(said: tuple[str, str], more: tuple[str, str]) -> tuple[str, str]:
    return f"{said[0]} {more[0]}", said[1] + more[1]


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


def _sized(row: Moved, end_s: float) -> Moved:
    try:
        status = os.stat(row.path)
    except (OSError, ValueError):
        return row
    if not stat.S_ISREG(status.st_mode) or (status.st_mtime > end_s + 1):
        return row
    return Moved(row.path, row.read, row.written, status.st_size)


def _excess(row: Moved) -> int:
    """Bytes beyond the size of the file, where they are many."""
    size = row.size or 0
    excess = max(row.read, row.written) - size
    return excess if excess >= LEAST_EXCESS and max(row.read, row.written) > TIMES_OVER * size else 0


def _stated(row: Moved) -> Part:
    most = "read" if row.read >= row.written else "written"
    values = {
        "path": Name("path", row.path),
        "moved": max(row.read, row.written),
        "size": row.size,
        "way": most,
    }
    values["way_ja"] = "読み" if most == "read" else "書き"
    said = ("{path} ({way} {moved:B}, size {size:B})", "{path} ({way_ja} {moved:B}、大きさ {size:B})")
    return Part("file", FINDING, said, None, values)


def _by_mount(session: Session, rows: Sequence[Moved]) -> list[Part]:
    """Volume of each file system, the largest first."""
    mounts = []
    if "environment" in session.recording.tables:
        mounts = [name for (name,) in session.fetch("SELECT name FROM environment WHERE section = 'mount'")]
    mounts = sorted({name.rstrip("/") + "/" for name in mounts}, key=lambda name: -len(name))
    volumes: dict[str, int] = {}
    for row in rows:
        mount = next((name for name in mounts if row.path.startswith(name)), "")
        volumes[mount] = volumes.get(mount, 0) + row.read + row.written
    most = sorted(volumes, key=lambda name: -volumes[name])[:_MOST_NAMED]
    return [
        Part(
            "mount",
            OK,
            ("{mount}: {bytes:B}", "{mount}: {bytes:B}")
            if mount
            else ("file systems not known: {bytes:B}", "ファイルシステム不明: {bytes:B}"),
            None,
            {"mount": Name("path", mount.rstrip("/") or "/"), "bytes": volumes[mount]},
        )
        for mount in most
    ]
