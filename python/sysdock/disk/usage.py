"""Which files a recording of calls used, and how much: what `disk scan --used-by` looks up on the disk."""

from __future__ import annotations

from pathlib import Path

from sysdock.analysis import Session
from sysdock.errors import UserError
from sysdock.recording import Recording

_SQL = """SELECT path, CAST(sum(calls) AS BIGINT),
    CAST(coalesce(sum(moved_bytes) FILTER (WHERE class IN ('read', 'copy')), 0) AS BIGINT),
    CAST(coalesce(sum(moved_bytes) FILTER (WHERE class = 'write'), 0) AS BIGINT),
    CAST(sum(time_ns) AS BIGINT)
FROM file_use
WHERE class IN ('read', 'write', 'copy') AND kind IN ('file', 'unknown') AND path LIKE '/%'
GROUP BY path
ORDER BY path"""


def write_list(recording: Path, out: Path) -> None:
    """Writes the list that the native program takes: see `add_usage` in crates/disk/src/usage.rs."""
    with Session(Recording.open(recording)) as session:
        if "calls" not in session.recording.tables:
            hint = "give a recording that `sysdock record` or `sysdock import` made"
            raise UserError("it holds no calls", hint, str(recording))
        rows = session.fetch(_SQL)
    if not rows:
        raise UserError("it reads and writes no files", "record what uses the files", str(recording))
    entries = (_entry(*row) for row in rows)
    out.write_bytes(b"".join(entries))


def _entry(path: str, *numbers: int | None) -> bytes:
    words = ["" if number is None else str(number) for number in numbers]
    return "\t".join([*words, path]).encode("utf-8", "surrogateescape") + b"\0"
