"""Writes recordings from Python: few rows, of what no native recorder sees (docs/reference/recording.md)."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sysdock import to_disk
from sysdock.library import Library, Table
from sysdock.recording import engine_instances, made_here
from sysdock.recording.manifest import Recording
from sysdock.recording.views import SETTINGS
from sysdock.version import FORMAT_VERSION

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
    """The recording.json of a recording without events; `capture` wrote it."""
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


def write_manifest(
    folder: Path, manifest: dict[str, Any], *, lasting: bool = True, is_own: bool = False
) -> None:
    """Replaces recording.json in one step. A link is never followed; who may read the folder may read it.

    lasting: it is to survive a power cut, with the parts that it lists, which must be on the disk. is_own: it
    was made by this user on this machine; so may be what it replaces.
    """
    content = (json.dumps(manifest, indent=2) + "\n").encode()
    is_own = is_own or made_here.is_noted(folder)
    with to_disk.replacing(folder / made_here.NAME, _mode(folder), lasting=lasting) as file:
        file.write(content)
        if is_own:
            file.flush()
            made_here.note(file.fileno(), content)


def folder_mode(folder: Path) -> int:
    """The mode of folders in a recording: who may read it may read them."""
    return 0o755 if folder.stat().st_mode & stat.S_IROTH else 0o700


def _mode(folder: Path) -> int:
    return folder_mode(folder) & 0o666


def add_part(
    folder: Path, library: Library, name: str, rows: Sequence[Sequence[Any]], *, lasting: bool = True
) -> None:
    """Adds `rows`, values in the order of the table's columns, to the table `name`; text becomes its type.

    An engine's error (a value that is not of its column's type) is the caller's. OSError: it cannot be
    written, and the recording is as it was. lasting: as in `write_manifest`.
    """
    manifest = Recording.open(folder).manifest
    entry = manifest["tables"].setdefault(name, {"rows": 0, "lost": 0, "parts": []})
    if rows:
        part = folder / name / f"part-{len(entry['parts']):04}.parquet"
        part.parent.mkdir(exist_ok=True, mode=folder_mode(folder))
        try:
            write_part(part, library.table(name), rows)
            entry["parts"].append(stated_part(folder, part, len(rows)))
            if lasting:
                for place in (part, part.parent, folder):
                    to_disk.sync(place)
        except BaseException:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise
        entry["rows"] += len(rows)
    write_manifest(folder, manifest, lasting=lasting)


def write_part(part: Path, table: Table, rows: Sequence[Sequence[Any]]) -> None:
    """Writes rows, values in the order of the columns, as a Parquet file. OSError: it cannot be written."""
    from sysdock.engine import duckdb

    instance = engine_instances.start(SETTINGS, "writing")
    connection = instance.connection.cursor()
    try:
        types = ", ".join(f'"{column.name}" {column.sql_type}' for column in table.columns)
        connection.execute(f"CREATE TEMP TABLE added ({types})")
        _insert(connection, len(table.columns), rows)
        connection.execute(
            f"COPY added TO {quoted_path(part)} (FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2)"
        )
    except duckdb.IOException as error:
        raise as_os_error(error, part) from None
    finally:
        connection.close()
        engine_instances.end(instance, is_shared=False)


def as_os_error(error: Exception, path: Path) -> OSError:
    """The error of the operating system for a file that the engine could not write."""
    number = re.search(r'"errno":"(\d+)"', str(error))
    if number:
        return OSError(int(number[1]), os.strerror(int(number[1])), str(path))
    return OSError(errno.EIO, str(error).splitlines()[0], str(path))


def _insert(connection: duckdb.DuckDBPyConnection, columns: int, rows: Sequence[Sequence[Any]]) -> None:
    """Many rows in one statement: seven times as fast as one each."""
    row = f"({', '.join('?' * columns)})"
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        some = rows[start : start + _ROWS_AT_ONCE]
        values = [value for each in some for value in each]
        connection.execute(f"INSERT INTO added VALUES {', '.join([row] * len(some))}", values)


def stated_part(folder: Path, part: Path, rows: int) -> dict[str, Any]:
    """The entry of a closed part in recording.json."""
    with open(os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        os.fchmod(file.fileno(), _mode(folder))
        size = os.fstat(file.fileno()).st_size
    place = part.relative_to(folder).as_posix()
    return {"file": place, "rows": rows, "bytes": size, "sha256": digest}


def quoted_path(path: Path) -> str:
    """A path as text in SQL."""
    return "'" + str(path).replace("'", "''") + "'"
