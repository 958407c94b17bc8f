"""Which files a recording of calls used, and how much: what `disk scan --used-by` looks up on the disk."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from sysdock.analysis import Session
from sysdock.errors import UserError
from sysdock.recording import Recording

_CALLS = """SELECT path, sum(calls) AS calls, 0 AS faults,
    sum(transferred_bytes) FILTER (WHERE class IN ('read', 'copy')) AS read_bytes,
    sum(transferred_bytes) FILTER (WHERE class = 'write') AS written_bytes,
    sum(time_ns) AS time_ns
FROM file_use
WHERE class IN ('read', 'write', 'copy') AND kind IN ('file', 'unknown')
GROUP BY path"""
# Operations of libaio and io_uring run in parallel: each counts for the time in which those that
# began before it had ended, so that the sum is the time in which there was any.
_OPERATIONS = """SELECT path, count(*) AS calls, 0 AS faults,
    sum(transferred_bytes) FILTER (WHERE class = 'read') AS read_bytes,
    sum(transferred_bytes) FILTER (WHERE class = 'write') AS written_bytes,
    sum(greatest(end_ns - greatest(ts_ns, coalesce(ended_ns, ts_ns)), 0)) AS time_ns
FROM (
    SELECT path, class, transferred_bytes, ts_ns, ts_ns + dur_ns AS end_ns, max(ts_ns + dur_ns) OVER (
        PARTITION BY path ORDER BY ts_ns, dur_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS ended_ns
    FROM calls
    WHERE via IS NOT NULL AND class IN ('read', 'write') AND kind IN ('file', 'unknown')
) AS operations
GROUP BY path"""
# The page that was touched at the least; neighbours come with it where the kernel reports it.
_FAULTS = """SELECT path, 0 AS calls, count(*) AS faults,
    sum(CASE WHEN was_mapped THEN 0 ELSE greatest(coalesce(mapped_bytes, 4096), 4096) END) AS read_bytes,
    4096 * count(*) FILTER (WHERE shared AND access = 'write') AS written_bytes,
    sum(dur_ns) AS time_ns
FROM file_faults
WHERE kind IN ('file', 'unknown')
GROUP BY path"""
_SQL = """SELECT path, CAST(sum(calls) AS BIGINT), CAST(sum(faults) AS BIGINT),
    CAST(coalesce(sum(read_bytes), 0) AS BIGINT), CAST(coalesce(sum(written_bytes), 0) AS BIGINT),
    CAST(sum(time_ns) AS BIGINT)
FROM ({uses}) AS used
WHERE path LIKE '/%'
GROUP BY path
ORDER BY path"""


def write_list(recording: Path, out: IO[bytes]) -> None:
    """Writes the list that the native program takes: see `add_usage` in crates/disk/src/usage.rs."""
    with Session(Recording.open(recording)) as session:
        if "calls" not in session.recording.tables:
            hint = "give a recording that `sysdock record` or `sysdock import` made"
            raise UserError("it holds no calls", hint, str(recording))
        # A log of strace states what is mapped, not what is touched.
        uses = [_CALLS, _OPERATIONS, *([_FAULTS] if "file_faults" in session.recording.tables else [])]
        rows = session.fetch(_SQL.format(uses=" UNION ALL ".join(uses)))
    if not rows:
        raise UserError("it reads and writes no files", "record what uses the files", str(recording))
    entries = (_entry(*row) for row in rows)
    out.write(b"".join(entries))


def _entry(path: str, *numbers: int | None) -> bytes:
    words = ["" if number is None else str(number) for number in numbers]
    return "\t".join([*words, path]).encode("utf-8", "surrogateescape") + b"\0"
