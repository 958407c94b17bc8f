"""A lake: what agents of many nodes wrote, as one recording.

`TABLE/date=2026-11-27/cluster=NAME/part-SECONDS-WRITER-NUMBER-ROWS-HASH.parquet`: the name says how many rows
there are and begins the hash of the content, so that nothing needs to be opened to know what there is. Names
that begin with `_` or `.` are no parts. While parts are merged, `_swap.json` in a folder says which are the
old ones and which the new, so that a reader takes one of the two.

`job_hours` has the sums of a day. The name of its part says of which parts of `job_samples` (`digest_of`).
Sums of a day to which more has come since are not taken; its samples are counted when that is asked for.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
import stat
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from sysdock.errors import UserError
from sysdock.recording.manifest import MOST_MERGES, Recording
from sysdock.recording.writing import empty_capture, empty_manifest
from sysdock.sentences import Fact, fact, say

PART = re.compile(r"part-(\d+)-([0-9a-f]{8}|merged)-(\d+)-(\d+)-([0-9a-f]{16})\.parquet$")
SWAP = "_swap.json"
MARK = "lake.json"
SAMPLES, SUMS = "job_samples", "job_hours"
FORMAT = 1
_DATE = re.compile(r"date=(\d{4}-\d{2}-\d{2})$")
_DAY = datetime.timedelta(days=1)
_LONGEST_SWAP = 16 << 20
_HINT = "a lake is a folder that `sysdock agent` or `sysdock collect` writes to"


@dataclass(frozen=True)
class LakePart:
    """A part: its table, its place, and what its name states."""

    table: str
    date: datetime.date
    cluster: str
    path: Path
    writer: str
    rows: int
    bytes: int
    hash: str

    def damage(self) -> str | None:
        """A description of its damage: all of it is read."""
        try:
            found = hash_of(self.path)
        except OSError as error:
            return f"cannot be read: {error.strerror}"
        return None if found.startswith(self.hash) else "its content is not what its name states"


class Lake(Recording):
    """The parts of a lake whose date lies within `days`, as a recording."""

    is_of_many_hosts = True

    def __init__(self, folder: Path, days: tuple[datetime.date, datetime.date] | None = None) -> None:
        check_mark(folder)
        self._days = days
        self.lake_parts, self._not_summed = _with_sums_that_hold(list(scan(folder, days)))
        super().__init__(folder, _manifest(folder, self.lake_parts))
        days_of = {table: {p.date for p in self.lake_parts if p.table == table} for table in (SAMPLES, SUMS)}
        self.days_of_sums = len(days_of[SUMS] - days_of[SAMPLES])

    @classmethod
    def open(cls, path: Path | str, days: tuple[datetime.date, datetime.date] | None = None) -> Lake:
        """Opens the lake `path`; of `days`, the first and the last, only those are read."""
        return cls(Path(path), days)

    def has_moved(self) -> bool:
        """Whether parts were merged or removed since the lake was opened."""
        return not all(part.path.exists() for part in self.lake_parts)

    def reopened(self) -> Lake:
        """The lake as it is now."""
        return Lake(self.folder, self._days)

    def verify(self, tables: Iterable[str]) -> None:
        """Nothing: hashing a lake takes as long as reading it. `sysdock lake check` does it."""

    def not_summed(self, table: str) -> list[Path] | None:
        """The parts of `job_samples` that are not in the sums of their day."""
        return self._not_summed if table == SUMS else super().not_summed(table)

    def damage(self) -> list[str]:
        """One line per damaged part: all are read."""
        found = ((part, part.damage()) for part in self.lake_parts)
        return [f"{part.path.relative_to(self.folder)}: {why}" for part, why in found if why]


def hash_of(path: Path) -> str:
    """SHA-256 of a file."""
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def is_lake(folder: Path) -> bool:
    """Whether a folder is a lake."""
    return folder.is_dir() and (folder / MARK).is_file()


def check_mark(folder: Path) -> None:
    """UserError: the folder is no lake, or one of a later version."""
    if not is_lake(folder):
        raise UserError("this is not a lake", _HINT, str(folder))
    place = folder / MARK
    try:
        format_ = json.loads(place.read_text("utf-8"))["format"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"does not identify this lake: {error}", _HINT, str(place)) from None
    if not isinstance(format_, int) or format_ > FORMAT:
        fact = f"a lake of form {format_}, which is newer than this sysdock reads ({FORMAT})"
        raise UserError(fact, "update sysdock", str(place))


def days_between(begin_ns: int, end_ns: int) -> tuple[datetime.date, datetime.date]:
    """Dates whose parts may hold samples between two moments: batches have the date of their end, in UTC."""

    def date(ns: int) -> datetime.date:
        return datetime.datetime.fromtimestamp(ns / 1e9, datetime.UTC).date()

    return date(begin_ns), date(end_ns) + _DAY


def scan(folder: Path, days: tuple[datetime.date, datetime.date] | None = None) -> Iterable[LakePart]:
    """All parts of a lake, or those of some days."""
    for table, date, cluster in folders_of(folder, days):
        yield from _parts_of_a_moment(table, date, cluster)


def folders_of(
    folder: Path, days: tuple[datetime.date, datetime.date] | None = None
) -> Iterable[tuple[str, datetime.date, Path]]:
    """All folders of parts of a lake, or those of some days, each with its table and date."""
    for table in _folders(folder):
        for date_folder in _folders(table):
            date = _date_of(date_folder)
            if date is None or (days and not days[0] <= date <= days[1]):
                continue
            for cluster in _folders(date_folder):
                if cluster.name.startswith("cluster="):
                    yield table.name, date, cluster


def _date_of(folder: Path) -> datetime.date | None:
    found = _DATE.fullmatch(folder.name)
    try:
        return datetime.date.fromisoformat(found[1]) if found else None
    except ValueError:
        # 30 February: no folder of a lake.
        return None


def _parts_of_a_moment(table: str, date: datetime.date, folder: Path) -> list[LakePart]:
    for _ in range(MOST_MERGES):
        # Between the look at the names and the look at the parts, a merge may have ended.
        with suppress(FileNotFoundError):
            return list(parts_of(table, date, folder))
    return list(parts_of(table, date, folder))


def parts_of(table: str, date: datetime.date, folder: Path) -> Iterable[LakePart]:
    """The parts in one folder of a lake; the new ones of a merge in progress."""
    names = {name: name for name in os.listdir(folder) if not name.startswith(("_", "."))}
    swap = read_swap(folder)
    if swap:
        for old in swap["remove"]:
            names.pop(old, None)
        for new in swap["add"]:
            unnamed = f"_new-{new}"
            names[new] = unnamed if (folder / unnamed).exists() else new
    for name, file in sorted(names.items()):
        match = PART.match(name)
        if not match:
            continue
        path = folder / file
        status = os.stat(path, follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode):
            raise UserError("a part of the lake is not a plain file", _HINT, str(path))
        cluster = unquote(folder.name.removeprefix("cluster="))
        yield LakePart(table, date, cluster, path, match[2], int(match[4]), status.st_size, match[5])


def read_swap(folder: Path) -> dict[str, list[str]] | None:
    """The merge in progress in a folder of a lake."""
    try:
        with open(folder / SWAP, "rb") as file:
            swap = json.loads(file.read(_LONGEST_SWAP).decode())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise _damaged_swap(fact("lake/not_json", why=str(error)), folder) from None
    lists = [swap.get(key) for key in ("remove", "add")] if isinstance(swap, dict) else [None]
    if not all(isinstance(names, list) and names and all(map(_is_part, names)) for names in lists):
        raise _damaged_swap(fact("lake/names_of_parts_missing"), folder)
    return {"remove": swap["remove"], "add": swap["add"]}


def _is_part(name: object) -> bool:
    return isinstance(name, str) and PART.fullmatch(name) is not None


def _damaged_swap(what: Fact, folder: Path) -> UserError:
    return UserError(say(what, "en"), say(fact("lake/compact_repairs"), "en"), str(folder / SWAP))


def digest_of(parts: Iterable[LakePart]) -> str:
    """The digest, in the name of a part of `job_hours`, of the parts whose rows it adds up."""
    names = sorted(part.path.name.removeprefix("_new-") for part in parts)
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:8]


def _with_sums_that_hold(parts: list[LakePart]) -> tuple[list[LakePart], list[Path]]:
    """Parts without sums that are out of date, and the paths of samples that are in none."""
    samples: dict[tuple[datetime.date, str], list[LakePart]] = defaultdict(list)
    for part in parts:
        if part.table == SAMPLES:
            samples[part.date, part.cluster].append(part)
    digests = {day: digest_of(of_day) for day, of_day in samples.items()}
    held, summed = [], set()
    # After an interrupted merge, there may be two of one day.
    for part in sorted(parts, key=lambda part: part.path, reverse=True):
        day = part.date, part.cluster
        # Only sums are left of a day whose samples are gone.
        holds = part.table != SUMS or (digests.get(day) in (part.writer, None) and day not in summed)
        if holds:
            held.append(part)
        if holds and part.table == SUMS:
            summed.add(day)
    waiting = [part.path for day, of_day in samples.items() if day not in summed for part in of_day]
    return sorted(held, key=lambda part: part.path), waiting


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            found = [
                Path(entry.path)
                for entry in entries
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(("_", "."))
            ]
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", None, str(folder)) from None
    for path in found:
        if not path.name.isprintable() and _is_not_text(path.name):
            raise UserError(say(fact("lake/name_without_meaning"), "en"), _HINT, ascii(str(path)))
    return sorted(found)


def _is_not_text(name: str) -> bool:
    """Whether a name has bytes that are no UTF-8, which no query can name."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return True
    return False


def _manifest(folder: Path, parts: list[LakePart]) -> dict[str, Any]:
    """A manifest in place of recording.json."""
    tables: dict[str, Any] = {}
    for part in parts:
        entry = tables.setdefault(part.table, {"rows": 0, "parts": []})
        entry["rows"] += part.rows
        file = str(part.path.relative_to(folder))
        entry["parts"].append({"file": file, "rows": part.rows, "bytes": part.bytes, "sha256": part.hash})
    if SAMPLES in tables:
        # Sums that are counted when they are asked for have no part.
        tables.setdefault(SUMS, {"rows": 0, "parts": []})
    dates = sorted({part.date for part in parts}) or [datetime.date(1970, 1, 1)]
    start = int(datetime.datetime.combine(dates[0], datetime.time(), datetime.UTC).timestamp())
    seconds = int(((dates[-1] - dates[0]) + _DAY).total_seconds())
    samples = tables.get("job_samples", {"rows": 0})["rows"]
    capture = empty_capture("agent", "samples", "jobs") | {"total": samples, "understood": samples}
    manifest = empty_manifest(tables, capture)
    return manifest | {"started_ns": start * 1_000_000_000, "duration_ns": seconds * 1_000_000_000}
