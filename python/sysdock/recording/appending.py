"""Appends rows to a recording that grows for years, and keeps it in few parts.

Each append writes a part of its own. When there are `_FAN` parts of one level at the end of a table, they
become one of the next level: a year of 52,560 appends leaves some 60 parts, and each row is written five
times.

Only recording.json says what belongs to the recording. It is replaced in one step, so whatever kills the
writer, all rows before are there. Parts that were merged are removed by the next append, not by this one:
somebody may be reading.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sysdock import to_disk
from sysdock.errors import UserError
from sysdock.library import Library, Table
from sysdock.own_folder import opened
from sysdock.recording.manifest import Recording
from sysdock.recording.views import SETTINGS
from sysdock.recording.writing import (
    as_os_error,
    folder_mode,
    quoted_path,
    stated_part,
    write_manifest,
    write_part,
)

_FAN = 16
_NAME = re.compile(r"part-(\d+)-(\d)\.parquet")
LOCK = "lock"
Rows = Sequence[Sequence[Any]]
# Changes recording.json before it is written.
Change = Callable[[dict[str, Any]], None]


@contextmanager
def locked(folder: Path, who: str) -> Iterator[Path]:
    """In its body no one else appends to the recording, at the path that it gets; else a UserError.

    `who`: what holds it, as the message names it. The kernel lets the lock go with the process. UserError
    also where the folder is not ours, or others may write to it.
    """
    with opened(folder) as place:
        yield from _locked(place, folder, who)


def _locked(place: Path, folder: Path, who: str) -> Iterator[Path]:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(place / LOCK, flags, 0o600 if folder.stat().st_mode & 0o077 == 0 else 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fact = f"{who} is writing to it"
            raise UserError(
                fact, "two at once would measure each other; try again later", str(folder)
            ) from None
        yield place
    finally:
        os.close(descriptor)


def append(folder: Path, library: Library, rows: Mapping[str, Rows], change: Change) -> None:
    """Appends rows, values in the order of the columns, to several tables at once: all of them, or none.

    The caller holds the lock. OSError: it cannot be written, and the recording is as it was.
    """
    manifest = Recording.open(folder).manifest
    _remove_unlisted(folder, manifest)
    made: list[Path] = []
    try:
        for name, some in rows.items():
            if some:
                made += _append(folder, library.table(name), some, manifest)
        change(manifest)
        for place in {place for part in made for place in (part, part.parent)} | {folder}:
            to_disk.sync(place)
        write_manifest(folder, manifest)
    except BaseException:
        for part in made:
            with suppress(OSError):
                part.unlink(missing_ok=True)
        raise


def _append(folder: Path, table: Table, rows: Rows, manifest: dict[str, Any]) -> list[Path]:
    """Writes a part, and those that parts become; returns what it made."""
    entry = manifest["tables"].setdefault(table.name, {"rows": 0, "lost": 0, "parts": []})
    within = folder / table.name
    within.mkdir(exist_ok=True, mode=folder_mode(folder))
    part = _next(within, 0)
    made = [part]
    try:
        write_part(part, table, rows)
        entry["parts"].append(stated_part(folder, part, len(rows)))
        entry["rows"] += len(rows)
        level = 0
        while len(old := _of_level(entry["parts"], level)) >= _FAN:
            level += 1
            made.append(_next(within, level))
            _merge([folder / each["file"] for each in old], made[-1])
            merged = stated_part(folder, made[-1], sum(each["rows"] for each in old))
            entry["parts"][-len(old) :] = [merged]
    except BaseException:
        for each in made:
            with suppress(OSError):
                each.unlink(missing_ok=True)
        raise
    return made


def _of_level(parts: Sequence[dict[str, Any]], level: int) -> list[dict[str, Any]]:
    """The parts of that level at the end."""
    found: list[dict[str, Any]] = []
    for part in reversed(parts):
        name = _NAME.fullmatch(Path(part["file"]).name)
        if name is None or int(name[2]) != level:
            break
        found.insert(0, part)
    return found


def _next(within: Path, level: int) -> Path:
    """A name that no part has, listed or not."""
    numbers = [int(name[1]) for path in within.iterdir() if (name := _NAME.fullmatch(path.name))]
    return within / f"part-{max(numbers, default=0) + 1:06}-{level}.parquet"


def _merge(old: Sequence[Path], new: Path) -> None:
    """All rows of parts in one, in their order."""
    from sysdock.engine import duckdb

    connection = duckdb.connect(config=SETTINGS)
    try:
        sources = ", ".join(map(quoted_path, old))
        select = f"SELECT * FROM read_parquet([{sources}], hive_partitioning = false)"
        options = "FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2"
        connection.execute(f"COPY ({select}) TO {quoted_path(new)} ({options})")
    except duckdb.IOException as error:
        raise as_os_error(error, new) from None
    finally:
        connection.close()


def _remove_unlisted(folder: Path, manifest: dict[str, Any]) -> None:
    """Removes parts that were merged, or left by a writer that was killed: files by our names only."""
    for name, entry in manifest["tables"].items():
        listed = {Path(part["file"]).name for part in entry["parts"]}
        within = folder / name
        if within.is_dir() and not within.is_symlink():
            for path in within.iterdir():
                if _NAME.fullmatch(path.name) and path.name not in listed:
                    path.unlink()
