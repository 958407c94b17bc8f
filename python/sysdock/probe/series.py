"""A series of probes: a recording that grows, with the plan that is measured each time next to it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sysdock import to_disk
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.own_folder import created
from sysdock.probe.directory_check import NoAnswer, look_at
from sysdock.probe.target import ClockReading, Target, by_path, on_mount, target_of
from sysdock.recording import Recording, connect
from sysdock.recording.appending import append, locked
from sysdock.recording.writing import empty_capture, empty_manifest, write_manifest
from sysdock.to_disk import umask

PLAN = "plan.json"
RECORDER = "probe"
WHO = "another `sysdock probe`"
_SYSTEM = Path("/var/lib/sysdock/probe")
_DURATION = re.compile(r"(\d+)\s*(s|min|m|h|d)")
_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_SHORTEST_S = 60
# A directory that does not answer for this time is known by its path alone.
_ANSWERS_S = 5.0


def default_root() -> Path:
    """Default folder of series: for root in /var/lib, for others in their own folder for data."""
    if os.geteuid() == 0:
        return _SYSTEM
    data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(data) / "sysdock" / "probe"


def parse_every(text: str) -> int:
    """A time between probes (`10min`, `1h`) in ns; a UserError where it is none, or too short."""
    found = _DURATION.fullmatch(text.strip())
    seconds = int(found[1]) * _UNITS[found[2]] if found and len(found[1]) < 10 else 0
    if seconds < _SHORTEST_S:
        raise UserError(f"`{text}` is not a time of a minute or more", "write 10min, 1h or 1d", "--every")
    return seconds * 1_000_000_000


def begin(folder: Path, series: Path | None, every_ns: int, library: Library) -> tuple[Path, Target]:
    """Makes the series of a directory; returns where it is, and what it measures."""
    target = target_of(folder)
    _refuse_unwritable(target)
    place = series or default_root() / target.name
    is_empty = place.is_dir() and not any(place.iterdir())
    if (place.exists() or place.is_symlink()) and not is_empty:
        hint = "`sysdock probe once` adds to it; another one: --series FOLDER"
        raise UserError("already exists", hint, str(place))
    with created(place, 0o777 & ~umask()) as reach:
        plan = library.load_plan("probe").content()
        to_disk.write(reach / PLAN, (json.dumps(plan, indent=1) + "\n").encode(), 0o644)
        now = ClockReading.now()
        manifest = empty_manifest({}, empty_capture(RECORDER, "probes", "probe"))
        manifest |= {"started_ns": now.time_ns, "host": os.uname().nodename}
        write_manifest(reach, manifest, is_own=True)
        rows = {"probe_targets": [target_row(target, 1, now, every_ns)], "probe_results": []}
        with locked(place, WHO) as within:
            append(within, library, rows, _with_tables)
    return place, target


def _refuse_unwritable(target: Target) -> None:
    if not target.may_write:
        why = "read-only" if "ro" in target.options.split(",") else "no permission to write"
        raise UserError(
            f"cannot be probed: {why}", "a probe makes files there, and removes them", str(target.folder)
        )


def _with_tables(manifest: dict[str, Any]) -> None:
    manifest["tables"].setdefault("probe_results", {"rows": 0, "lost": 0, "parts": []})


def target_row(target: Target, probe_id: int, now: ClockReading, every_ns: int) -> tuple[Any, ...]:
    """A row of `probe_targets`."""
    what = (
        str(target.folder),
        target.mount_point,
        target.fs_type,
        target.source,
        target.options,
        target.device,
    )
    return (probe_id, now.time_ns, *what, target.size_bytes, now.kernel, os.uname().nodename, every_ns)


def is_series(folder: Path) -> bool:
    """Whether a folder is a series of probes."""
    return (folder / "recording.json").is_file() and (folder / PLAN).is_file()


def find(folder: Path | None, series: Path | None = None, within_s: float = _ANSWERS_S) -> Path:
    """The series that is meant: the one named, that of a directory, or the only one that there is.

    A directory may hang. After `within_s` it is the series of where its path lies; NoAnswer: there is none.
    """
    if series is not None:
        if not is_series(series):
            raise UserError(
                "no series of probes", "`sysdock probe init DIR --series FOLDER` makes one", str(series)
            )
        return series
    root = default_root()
    if folder is not None:
        try:
            looked = look_at(folder, min(within_s, _ANSWERS_S), ("recording.json", PLAN))
            if looked.has_files:
                return folder
            place = root / on_mount(looked).name
        except NoAnswer:
            place = root / by_path(folder).name
            if not is_series(place):
                raise
        if not is_series(place):
            raise UserError(
                "has no series of probes", f"`sysdock probe init {folder}` begins one", str(folder)
            )
        return place
    found = []
    with suppress(FileNotFoundError):
        found = sorted(place for place in root.iterdir() if is_series(place))
    if not found:
        raise UserError("there is no series of probes", "`sysdock probe init DIR` begins one", str(root))
    if len(found) > 1:
        names = ", ".join(place.name for place in found)
        raise UserError(f"there are several series: {names}", "name the directory, or the series", str(root))
    return found[0]


def last_target(recording: Recording, library: Library) -> dict[str, Any]:
    """The newest row of `probe_targets`, by column."""
    recording.verify(["probe_targets"])
    connection = connect(recording, library, ["probe_targets"])
    try:
        found = connection.execute("SELECT * FROM probe_targets ORDER BY probe_id DESC, time_ns DESC LIMIT 1")
        names = [each[0] for each in found.description or []]
        rows: Sequence[Any] = found.fetchall()
    finally:
        connection.close()
    if not rows:
        raise UserError("it does not state what it measures", "start a new series", str(recording.folder))
    return dict(zip(names, rows[0], strict=True))


def read_plan(series: Path) -> dict[str, Any]:
    """The plan of a series; a UserError where it is damaged."""
    try:
        plan = json.loads((series / PLAN).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"cannot be read: {error}", "start a new series", str(series / PLAN)) from None
    if not isinstance(plan, dict) or not isinstance(plan.get("steps"), list):
        raise UserError("not a plan", "start a new series", str(series / PLAN))
    return plan
