"""The scans of a series, and what each says by the analysis that a single scan is answered with."""

from __future__ import annotations

import datetime
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sysdock import to_disk
from sysdock.disk import totals
from sysdock.errors import UserError
from sysdock.library import Column, Library
from sysdock.own_folder import opened
from sysdock.recording import Recording
from sysdock.walk import reach

_TIME = Column("time", "VARCHAR", None, "When it was scanned, in UTC.")
_STAMP = "%Y-%m-%dT%H-%M-%SZ"
_MARK = "made-by-snapshot"
_NAME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ)(-\d+)?$")


@dataclass(frozen=True)
class Snapshot:
    """One complete scan, and its row of `totals.ANALYSIS` by the names of the columns."""

    folder: Path
    facts: dict[str, Any]

    @property
    def time(self) -> datetime.datetime:
        """When it was made."""
        found = _NAME.match(self.folder.name)
        assert found, self.folder
        return datetime.datetime.strptime(found[1], _STAMP).replace(tzinfo=datetime.UTC)


@contextmanager
def opened_or_made(series: Path) -> Iterator[Path]:
    """The folder of a series for the body, by its descriptor; it is made where it is missing."""
    descriptor = to_disk.open_or_make(series)
    try:
        yield reach(descriptor)
    finally:
        os.close(descriptor)


def next_name(series: Path) -> Path:
    """The folder of a scan that begins now."""
    now = datetime.datetime.now(datetime.UTC).strftime(_STAMP)
    names = [series / now, *(series / f"{now}-{number}" for number in range(2, 100))]
    return next(name for name in names if not name.exists())


def mark(folder: Path) -> None:
    """Says in the folder of a scan that it was made for a series: a copy of it is another folder."""
    with opened(folder, of_caller=True) as place:
        like = os.stat(place / "recording.json", follow_symlinks=False)
        with to_disk.replacing(place / _MARK, 0o600, like=like) as file:
            file.write(_mark_of(place))


def remove_older(series: Path, keep: int) -> list[Path]:
    """Removes all but the newest `keep` scans, of those that were made here; returns what was removed.

    A name that is a time proves nothing: a folder without our mark is somebody's own.
    """
    gone = [path for path in folders(series)[:-keep] if _is_marked(path)]
    for path in gone:
        shutil.rmtree(path)
    return gone


def _mark_of(folder: Path) -> bytes:
    return f"{os.stat(folder).st_ino}\n".encode()


def _is_marked(folder: Path) -> bool:
    try:
        with opened(folder, of_caller=True) as place, open(place / _MARK, "rb") as file:
            return file.read(32) == _mark_of(place)
    except (OSError, UserError):
        return False


def snapshots(series: Path, library: Library) -> list[Snapshot]:
    """The complete scans of a series, the oldest first."""
    opened = [Recording.open(path) for path in folders(series)]
    found = [(one.folder, totals.facts(one, library)) for one in opened if one.manifest["complete"]]
    return [Snapshot(folder, facts) for folder, facts in found if facts is not None]


def columns(library: Library) -> tuple[Column, ...]:
    """Columns of `rows`, the time first."""
    return (_TIME, *totals.columns(library))


def rows(found: Iterable[Snapshot]) -> list[tuple[Any, ...]]:
    """A row under `columns` for each scan."""
    return [(each.folder.name, *totals.shown(each.facts)) for each in found]


def folders(series: Path) -> list[Path]:
    """The scans of a series, the oldest first."""
    if not series.is_dir():
        raise UserError("no such series", "`sysdock disk snapshot TARGET -o SERIES` makes one", str(series))
    return sorted(
        path for path in series.iterdir() if _NAME.match(path.name) and (path / "recording.json").exists()
    )
