"""Writes recordings from Python: few rows, of what no native recorder sees (docs/reference/recording.md)."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sysdock.library import Library
from sysdock.recording.manifest import FORMAT_VERSION, Recording
from sysdock.recording.views import SETTINGS

if TYPE_CHECKING:
    import duckdb

_ROWS_AT_ONCE = 500


def empty_capture(recorder: str, unit: str, about: str) -> dict[str, Any]:
    """A capture that saw nothing and came to its end: it counts in `unit`, and records the family `about`."""
    return {
        "recorder": recorder,
        "unit": unit,
        "total": 0,
        "understood": 0,
        "lost": 0,
        "clock": {"kind": "epoch", "has_durations": True},
        "options": [],
        "families": [{"family": about, "missing": None}],
        "sources": [],
        "counts": {},
        "issues": {},
        "complete": True,
        "ended_by": "end of input",
    }


def empty_manifest(tables: dict[str, Any], capture: dict[str, Any]) -> dict[str, Any]:
    """What recording.json says of a recording in which nothing happened; `capture` wrote it."""
    return {
        "format_version": FORMAT_VERSION,
        "command": None,
        "host": None,
        "started_ns": 0,
        "duration_ns": 0,
        "complete": True,
        "captures": [capture],
        "tables": tables,
    }


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Replaces recording.json in one step. A link is never followed; who may read the folder may read it."""
    new = folder / "recording.json.new"
    new.unlink(missing_ok=True)
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _mode(folder))
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(json.dumps(manifest, indent=2) + "\n")
    os.replace(new, folder / "recording.json")


def _mode(folder: Path) -> int:
    return 0o644 if folder.stat().st_mode & stat.S_IROTH else 0o600


def add_part(folder: Path, library: Library, name: str, rows: Sequence[Sequence[Any]]) -> None:
    """Adds `rows`, values in the order of the table's columns, to the table `name`; text becomes its type.

    An engine's error (a value that is not of its column's type) is the caller's.
    """
    import duckdb

    manifest = Recording.open(folder).manifest
    entry = manifest["tables"].setdefault(name, {"rows": 0, "lost": 0, "parts": []})
    if rows:
        part = f"{name}/part-{len(entry['parts']):04}.parquet"
        (folder / name).mkdir(exist_ok=True, mode=folder.stat().st_mode & 0o777)
        connection = duckdb.connect(config=SETTINGS)
        try:
            columns = library.table(name).columns
            types = ", ".join(f'"{column.name}" {column.sql_type}' for column in columns)
            connection.execute(f"CREATE TEMP TABLE added ({types})")
            _insert(connection, len(columns), rows)
            connection.execute(
                f"COPY added TO {quoted_path(folder / part)} "
                "(FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2)"
            )
        finally:
            connection.close()
        entry["parts"].append(stated_part(folder, folder / part, len(rows)))
        entry["rows"] += len(rows)
    write_manifest(folder, manifest)


def _insert(connection: duckdb.DuckDBPyConnection, columns: int, rows: Sequence[Sequence[Any]]) -> None:
    """Many rows in one statement: seven times as fast as one each."""
    row = f"({', '.join('?' * columns)})"
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        some = rows[start : start + _ROWS_AT_ONCE]
        values = [value for each in some for value in each]
        connection.execute(f"INSERT INTO added VALUES {', '.join([row] * len(some))}", values)


def stated_part(folder: Path, part: Path, rows: int) -> dict[str, Any]:
    """What recording.json says of a closed part."""
    with open(part, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    part.chmod(_mode(folder))
    place = part.relative_to(folder).as_posix()
    return {"file": place, "rows": rows, "bytes": part.stat().st_size, "sha256": digest}


def quoted_path(path: Path) -> str:
    """A path as text in SQL."""
    return "'" + str(path).replace("'", "''") + "'"
