"""Scans of one file system over time: a folder with one recording for each."""

from __future__ import annotations

import datetime
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sysdock.errors import UserError
from sysdock.library import Column, Library
from sysdock.recording import Recording, connect

COLUMNS = (
    Column("time", "VARCHAR", None, "When it was scanned, in UTC."),
    Column("files", "BIGINT", None, "Files and directories."),
    Column("allocated_bytes", "BIGINT", "B", "What they take up on the device."),
    Column("free_bytes", "BIGINT", "B", "Free space."),
    Column("free_extents", "BIGINT", None, "Pieces of free space."),
    Column("fragments", "BIGINT", None, "Pieces of all files."),
    Column("fragmented_files", "BIGINT", None, "Files in more than one piece."),
    Column(
        "layout_score", "DOUBLE", None, "Part of the blocks of files that lie right behind the block before."
    ),
)
_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ(-\d+)?$")
_SQL = """WITH held AS (
    SELECT count(*) AS files, sum(allocated_bytes) AS bytes, sum(fragments) AS fragments,
        count(*) FILTER (WHERE fragments > 1) AS broken,
        sum(greatest(fragments - 1, 0)) AS breaks, count(*) FILTER (WHERE allocated_bytes > 0) AS stored
    FROM inodes
)
SELECT h.files, coalesce(CAST(h.bytes AS BIGINT), 0), f.free_bytes, {free},
    coalesce(CAST(h.fragments AS BIGINT), 0), h.broken,
    CASE WHEN h.bytes / f.block_bytes > h.stored
        THEN round(1 - h.breaks / (h.bytes / f.block_bytes - h.stored), 4) END
FROM held AS h, file_systems AS f"""


def next_name(series: Path) -> Path:
    """The folder of a scan that begins now."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
    names = [series / now, *(series / f"{now}-{number}" for number in range(2, 100))]
    return next(name for name in names if not name.exists())


def scans(series: Path) -> list[Path]:
    """The scans of a series, the oldest first."""
    if not series.is_dir():
        raise UserError("no such series", "`sysdock disk snapshot TARGET -o SERIES` makes one", str(series))
    return sorted(
        path for path in series.iterdir() if _NAME.match(path.name) and (path / "recording.json").exists()
    )


def remove_older(series: Path, keep: int) -> list[Path]:
    """Removes all but the newest `keep` scans; returns what was removed."""
    gone = scans(series)[:-keep]
    for path in gone:
        shutil.rmtree(path)
    return gone


def rows(series: Path, library: Library) -> Iterator[tuple[Any, ...]]:
    """A row under `COLUMNS` for each complete scan."""
    for path in scans(series):
        recording = Recording.open(path)
        if not recording.manifest["complete"]:
            continue
        free = "(SELECT count(*) FROM free_extents)" if "free_extents" in recording.tables else "NULL"
        connection = connect(recording, library)
        try:
            yield (path.name, *(connection.execute(_SQL.format(free=free)).fetchone() or ()))
        finally:
            connection.close()
