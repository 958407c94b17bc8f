"""Opens a recording: reads recording.json and checks the parts it lists.

The format is described in docs/reference/recording.md. A recording may come from a stranger, so nothing that
recording.json states is believed before it was checked.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NotRequired, TypedDict, cast

from sysdock.errors import UserError, refusal
from sysdock.recording.earlier_formats import PROSE_FORMAT, convert_prose
from sysdock.sentences import fact
from sysdock.version import FORMAT_VERSION

# A merge makes one capture of those that are alike; a table with a row for each is computed from this file.
_MOST_CAPTURES = 1000
# How often a reader begins again because parts of a lake were merged meanwhile.
MOST_MERGES = 10
_RECORD_HINT = "a recording is a folder that `sysdock run` or `sysdock import` made"
DAMAGE_HINT = (
    "the recording was damaged or changed after it was written; take a good copy, or import the log again"
)
_PERMISSION_HINT = "only some users may read this recording; ask its owner for a copy, or for the permission"
_NEEDED = {
    "started_ns": int,
    "duration_ns": int,
    "complete": bool,
    "captures": list,
    "tables": dict,
}
_OPTIONAL = {
    "command": str,
    "host": str,
    "directory": str,
    "exit_code": int,
    "exit_signal": str,
    "tool": dict,
}
# Required keys of a capture, and their types.
_NEEDED_OF_CAPTURE = {
    "recorder": str,
    "unit": str,
    "total": int,
    "understood": int,
    "lost": int,
    "clock": dict,
    "complete": bool,
    "ended_by": str,
}
_OPTIONAL_OF_CAPTURE = {
    "options": list,
    "families": list,
    "sources": list,
    "counts": dict,
    "issues": dict,
}
# Optional keys of a capture's clock, and their types.
_OPTIONAL_OF_CLOCK = {
    "kind": str,
    "has_durations": bool,
    "includes_tracer": bool,
    "note": list,
    "durations": str,
    "stamps": str,
    "resolution_ns": int,
}
_MOST = 1 << 63
# Why a family of events was not recorded.
NOT_REQUESTED = {"code": "capture/not_requested"}
# Files of recorders are a hundredth as long and a third as deep.
_MOST_BYTES, _MOST_DEPTH = 16 << 20, 20
_TOO_DEEP = "objects and lists are nested too deeply"
_CHUNK = 1 << 20


class Clock(TypedDict, total=False):
    """The clock of a capture; what is not known is missing or null."""

    kind: str | None
    has_durations: bool | None
    includes_tracer: bool | None
    note: list[Any] | None


class PartEntry(TypedDict):
    """A Parquet file of a table: its place in the folder, its rows and bytes, the hash of its content."""

    file: str
    rows: int
    bytes: int
    sha256: str


class TableEntry(TypedDict):
    """The entry of a table in recording.json."""

    rows: int
    lost: NotRequired[int | None]
    parts: list[PartEntry]


class Recording:
    """A recording on disk: `folder`, and `manifest`, the content of its recording.json.

    `is_of_many_hosts`: that it was not written on this machine says nothing about it. `days_of_sums`: days of
    which it has no samples any more, only their sums.
    """

    is_of_many_hosts = False
    days_of_sums = 0

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder = folder
        self.manifest = manifest
        self._verified: set[str] = set()

    @classmethod
    def open(cls, path: Path | str) -> Recording:
        """Opens the folder `path`; a UserError says why it is not a recording that can be read."""
        folder = Path(path)
        if not folder.exists():
            raise UserError("no such recording", _RECORD_HINT, str(folder))
        if not folder.is_dir():
            instead = f"to read a log: `sysdock import {folder} -o REC`"
            raise UserError("this is a file, not a recording", instead, str(folder))
        place = folder / "recording.json"
        try:
            # A pipe or a device would be read for ever.
            status = os.stat(place)
            if not stat.S_ISREG(status.st_mode):
                raise UserError("not a plain file", _RECORD_HINT, str(place))
            if status.st_size > _MOST_BYTES:
                raise UserError(f"{status.st_size:,} bytes are too many", DAMAGE_HINT, str(place))
            manifest = json.loads(place.read_text("utf-8"), parse_constant=_refuse_constant)
        except FileNotFoundError:
            from sysdock.recording.lake import Lake, is_lake

            if is_lake(folder):
                return Lake(folder)
            fact = "this folder is not a recording: it has no recording.json"
            raise UserError(fact, _RECORD_HINT, str(folder)) from None
        except OSError as error:
            hint = _PERMISSION_HINT if isinstance(error, PermissionError) else None
            raise UserError(f"cannot be read: {error.strerror}", hint, str(place)) from None
        except json.JSONDecodeError as error:
            raise UserError(f"not JSON: {error.msg}", DAMAGE_HINT, f"{place}:{error.lineno}") from None
        except UnicodeDecodeError:
            raise UserError("not JSON: not UTF-8 text", DAMAGE_HINT, str(place)) from None
        except RecursionError:
            raise UserError(_TOO_DEEP, DAMAGE_HINT, str(place)) from None
        except ValueError as error:
            # A number of thousands of digits, or no number at all.
            raise UserError(f"not JSON: {error}", DAMAGE_HINT, str(place)) from None
        _check_values(manifest, str(place))
        _check_manifest(manifest, str(place))
        return cls(folder, manifest)

    @property
    def tables(self) -> list[str]:
        """Names of the tables it holds."""
        return list(self.manifest["tables"])

    @property
    def captures(self) -> list[dict[str, Any]]:
        """The captures, in order; at least one (docs/reference/recording.md)."""
        return cast(list[dict[str, Any]], self.manifest["captures"])

    @property
    def families(self) -> set[str]:
        """Families of events that its captures know, also those that were not recorded."""
        return {state["family"] for capture in self.captures for state in capture.get("families") or []}

    @property
    def sources(self) -> list[dict[str, Any]]:
        """Inputs that were imported, of all captures; what a recorder wrote for itself is not among them."""
        sources = [source for capture in self.captures for source in capture.get("sources") or []]
        return [source for source in sources if not source.get("temporary")]

    @property
    def ended_by(self) -> str:
        """How it ended: the ending of the first capture that is not complete."""
        ended = (capture["ended_by"] for capture in self.captures if not capture["complete"])
        return cast(str, next(ended, self.captures[0]["ended_by"]))

    @property
    def clock(self) -> Clock:
        """The clock that all its captures are on, as the first of them describes it."""
        return cast(Clock, self.captures[0]["clock"])

    @property
    def lost_events(self) -> int:
        """Events that were dropped, as far as known, of all captures."""
        return sum(capture["lost"] for capture in self.captures)

    @property
    def started_ns(self) -> int:
        """Start of the first event, ns since the Unix epoch."""
        return cast(int, self.manifest["started_ns"])

    @property
    def has_clock(self) -> bool:
        """Whether its times are times: without any clock in the log they only count lines."""
        return self.clock.get("kind") != "order"

    @property
    def has_durations(self) -> bool:
        """Whether the log states how long calls took."""
        return self.clock.get("has_durations") is not False

    def rows(self, table: str) -> int:
        """Number of rows of a table."""
        return self._entry(table)["rows"]

    def lost(self, table: str) -> int:
        """Number of events that are known to be missing from a table."""
        return self._entry(table).get("lost") or 0

    def bytes_on_disk(self, table: str) -> int:
        """Size of the parts of a table."""
        return sum(part["bytes"] for part in self._entry(table)["parts"])

    def parts(self, table: str) -> list[Path]:
        """Paths of the parts of a table, in order; empty for a table without rows."""
        return [self.folder / part["file"] for part in self._entry(table)["parts"]]

    def not_summed(self, table: str) -> list[Path] | None:
        """Parts whose rows the stored summary `table` does not add up; None: only its sums can tell."""
        return None

    def has_moved(self) -> bool:
        """Whether its parts were replaced since it was opened; only those of a lake are."""
        return False

    def reopened(self) -> Recording:
        """The same with the parts that are there now."""
        return self

    def verify(self, tables: Iterable[str]) -> None:
        """Checks that all parts of `tables` are there, whole and unchanged (SHA-256); each table once.

        Damaged Parquet mostly reads as wrong numbers without an error, so this comes before the first query.
        """
        for table in tables:
            if table not in self._verified:
                for part in self._entry(table)["parts"]:
                    self._verify_part(part)
                self._verified.add(table)

    def damage(self) -> list[str]:
        """One line per part that is missing or has a wrong size; the content is not read."""
        found = []
        for table in self.tables:
            for part in self._entry(table)["parts"]:
                try:
                    self._sized(part)
                except UserError as error:
                    found.append(f"{part['file']}: {error.fact}")
        return found

    def _entry(self, table: str) -> TableEntry:
        tables: dict[str, TableEntry] = self.manifest["tables"]
        if table not in tables:
            hint = f"it holds {', '.join(sorted(tables))}" if tables else "it holds no table at all"
            raise UserError(f"this recording has no table `{table}`", hint, str(self.folder))
        return tables[table]

    def _sized(self, part: PartEntry) -> Path:
        path = self.folder / part["file"]
        try:
            # A link could lead anywhere, also to a device that never ends.
            status = os.stat(path, follow_symlinks=False)
        except PermissionError as error:
            raise UserError(f"cannot be read: {error.strerror}", _PERMISSION_HINT, str(path)) from None
        except OSError:
            raise UserError("a part of the recording is missing", DAMAGE_HINT, str(path)) from None
        if not stat.S_ISREG(status.st_mode) or self.folder.resolve() not in path.resolve().parents:
            raise UserError("a part of the recording is not a plain file inside it", DAMAGE_HINT, str(path))
        if status.st_size != part["bytes"]:
            fact = f"a part of the recording has {status.st_size} bytes instead of {part['bytes']}"
            raise UserError(fact, DAMAGE_HINT, str(path))
        return path

    def _verify_part(self, part: PartEntry) -> None:
        path = self._sized(part)
        digest = hashlib.sha256()
        try:
            with open(path, "rb", buffering=0) as file:
                while block := file.read(_CHUNK):
                    digest.update(block)
        except OSError as error:
            hint = _PERMISSION_HINT if isinstance(error, PermissionError) else None
            raise UserError(f"cannot be read: {error.strerror}", hint, str(path)) from None
        if digest.hexdigest() != part["sha256"]:
            fact = "the content of a part does not match the hash in recording.json"
            raise UserError(fact, DAMAGE_HINT, str(path))


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _check_values(manifest: Any, place: str) -> None:
    """Refuses numbers, texts and depths that no reader could work with, also below unknown keys."""
    level: list[Any] = [manifest]
    for _ in range(_MOST_DEPTH):
        for value in level:
            if isinstance(value, int) and not -_MOST <= value < _MOST:
                raise UserError("a number has more than 64 bits", DAMAGE_HINT, place)
            if isinstance(value, float) and not math.isfinite(value):
                raise UserError("a number is too large", DAMAGE_HINT, place)
            if isinstance(value, str) and not _is_text(value):
                raise UserError("a text has half a surrogate pair", DAMAGE_HINT, place)
        inner = [
            value.items() if isinstance(value, dict) else [(None, each) for each in value]
            for value in level
            if isinstance(value, (dict, list))
        ]
        level = [part for pairs in inner for pair in pairs for part in pair if part is not None]
        if not level:
            return
    raise UserError(_TOO_DEEP, DAMAGE_HINT, place)


def _is_text(value: str) -> bool:
    """Whether it can be written: JSON can escape halves of pairs of UTF-16."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_manifest(manifest: Any, place: str) -> None:
    """Refuses what cannot be a recording.json of this version."""
    version = manifest.get("format_version") if isinstance(manifest, dict) else None
    if not isinstance(version, int):
        raise UserError("no format_version: this is not a recording", _RECORD_HINT, place)
    if version > FORMAT_VERSION:
        tool = manifest.get("tool")
        by = (
            f" by {tool['name']} {tool['version']}"
            if isinstance(tool, dict) and {"name", "version"} <= set(tool)
            else ""
        )
        fact = f"format version {version}, written{by}, is newer than this sysdock reads ({FORMAT_VERSION})"
        raise UserError(fact, "update sysdock", place)
    if version == PROSE_FORMAT:
        convert_prose(manifest)
    elif version < FORMAT_VERSION:
        fact = f"format version {version} is older than this sysdock reads ({FORMAT_VERSION})"
        raise UserError(fact, "record again, or import the log again", place)
    wrong = [key for key, type_ in _NEEDED.items() if not _is(manifest.get(key), type_)]
    wrong += [
        key
        for key, type_ in _OPTIONAL.items()
        if manifest.get(key) is not None and not _is(manifest[key], type_)
    ]
    if not wrong and manifest["duration_ns"] < 0:
        wrong.append("duration_ns")
    if not wrong:
        _refuse_many(manifest["captures"], place)
    if not wrong:
        wrong += _wrong_of_captures(manifest["captures"])
    if wrong:
        raise UserError(f"`{wrong[0]}` is missing or not of its type", DAMAGE_HINT, place)
    for name, entry in manifest["tables"].items():
        if not _is_entry(name, entry):
            raise UserError(f"the entry of table `{name}` is invalid", DAMAGE_HINT, place)
    _check_listed_once(manifest["tables"], place)


def _refuse_many(captures: Sequence[Any], place: str) -> None:
    if len(captures) > _MOST_CAPTURES:
        why = fact("recording/too_many_captures", captures=len(captures), most=_MOST_CAPTURES)
        raise refusal(why, fact("recording/merge_joins_captures"), place)


def is_not_requested(state: Mapping[str, Any]) -> bool:
    """Whether a family of events is missing because it was not requested (`captures[].families[]`)."""
    return bool(state.get("missing") == NOT_REQUESTED)


def _check_listed_once(tables: dict[str, TableEntry], place: str) -> None:
    """Each table and each part is listed once, and rows of parts add up to those of their table."""
    names = [name.casefold() for name in tables]
    if twice := _repeated(names):
        raise UserError(f"table `{twice}` is listed twice", DAMAGE_HINT, place)
    files = [str(PurePosixPath(part["file"])) for entry in tables.values() for part in entry["parts"]]
    if twice := _repeated(files):
        raise UserError(f"part `{twice}` is listed twice", DAMAGE_HINT, place)
    for name, entry in tables.items():
        rows = sum(part["rows"] for part in entry["parts"])
        if rows != entry["rows"]:
            fact = f"table `{name}` has {entry['rows']:,} rows, but its parts have {rows:,}"
            raise UserError(fact, DAMAGE_HINT, place)


def _repeated(names: Sequence[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)


def _is(value: Any, type_: type) -> bool:
    if type_ is int:
        return isinstance(value, int) and not isinstance(value, bool) and -_MOST <= value < _MOST
    return isinstance(value, type_)


def _wrong_of_captures(captures: list[Any]) -> list[str]:
    """Places that are missing, or not of their type."""
    if not captures:
        return ["captures"]
    return [
        f"captures.{number}.{key}"
        for number, capture in enumerate(captures)
        for key in (_wrong_of_capture(capture) if isinstance(capture, dict) else ["recorder"])
    ]


def _wrong_of_capture(capture: dict[str, Any]) -> list[str]:
    wrong = [key for key, type_ in _NEEDED_OF_CAPTURE.items() if not _is(capture.get(key), type_)]
    wrong += [
        key
        for key, type_ in _OPTIONAL_OF_CAPTURE.items()
        if capture.get(key) is not None and not _is(capture[key], type_)
    ]
    wrong += [key for key in ("total", "understood", "lost") if key not in wrong and capture[key] < 0]
    if not wrong and capture["understood"] > capture["total"]:
        wrong.append("understood")
    wrong += [f"clock.{key}" for key in _wrong_of_clock(capture.get("clock"))]
    lists = ("options", "families", "sources")
    wrong += [key for key in lists if key not in wrong and not _is_list(capture, key)]
    counted = [key for key in ("counts", "issues") if key not in wrong]
    return wrong + [key for key in counted if not all(map(_is_count, (capture.get(key) or {}).values()))]


def _wrong_of_clock(clock: Any) -> list[str]:
    if not isinstance(clock, dict):
        return []
    known = _OPTIONAL_OF_CLOCK.items()
    return [key for key, type_ in known if clock.get(key) is not None and not _is(clock[key], type_)]


def _is_list(capture: dict[str, Any], key: str) -> bool:
    """Whether `options` are words, and `families` and `sources` objects of texts and sizes."""
    entries = capture.get(key) or []
    if key == "options":
        return all(isinstance(entry, str) for entry in entries)
    types = {"path": str, "bytes": int, "lines": int, "temporary": bool, "family": str, "missing": dict}
    return all(
        isinstance(entry, dict)
        and all(entry.get(name) is None or _is(entry[name], type_) for name, type_ in types.items())
        and (key != "families" or entry.get("family") is not None)
        for entry in entries
    )


def _is_entry(name: str, entry: Any) -> bool:
    if not (
        isinstance(entry, dict)
        and _is_count(entry.get("rows"))
        and (entry.get("lost") is None or _is_count(entry["lost"]))
        and isinstance(entry.get("parts"), list)
    ):
        return False
    return name.isidentifier() and all(_is_part(part) for part in entry["parts"])


def _is_count(value: Any) -> bool:
    return _is(value, int) and value >= 0


def _is_part(part: Any) -> bool:
    if not (
        isinstance(part, dict) and isinstance(part.get("file"), str) and isinstance(part.get("sha256"), str)
    ):
        return False
    path = PurePosixPath(part["file"])
    inside = not path.is_absolute() and ".." not in path.parts and "\0" not in part["file"]
    return inside and _is_count(part.get("bytes")) and _is_count(part.get("rows"))
