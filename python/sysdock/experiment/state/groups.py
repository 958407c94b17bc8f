"""The kind `cgroup:`: limits for a workload, in control groups of version 1 and 2.

`cgroup:NAME/cpu.max`: a file of the group NAME, which is made where it is missing and removed afterwards.
Files are named as in version 2. Where this machine has the controller only in version 1, `cpu.max`,
`cpu.weight`, `memory.max`, `io.max` and `cpuset.cpus` are written to the files that mean the same there;
names of version 1 work there, too. Who is in a group that the experiment made is ended when it goes.
"""

from __future__ import annotations

import os
import re
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sysdock.errors import UserError, did_you_mean
from sysdock.experiment.state import processes
from sysdock.experiment.state.journal import Entry, Journal
from sysdock.experiment.state.kind import Difference, Kind, cannot, normal
from sysdock.experiment.state.mounts import mounts
from sysdock.experiment.state.values import plain_size, read, write

_TRIES = 100
_PAUSE_S = 0.05
_NO_LIMIT = "max"
# io.max of version 2, and the files of version 1.
_IO = {"rbps": "read_bps", "wbps": "write_bps", "riops": "read_iops", "wiops": "write_iops"}
_PERIOD_US = 100_000


@dataclass(frozen=True)
class Hierarchy:
    """Location of the groups of a controller; version 1 has one hierarchy for each controller."""

    top: Path
    version: int


def hierarchy(controller: str) -> Hierarchy:
    """The one that has a controller; `cgroup` for files that each group of version 2 has."""
    ones, twos = {}, []
    for mount in mounts():
        if mount.kind == "cgroup":
            ones.update(dict.fromkeys(mount.options.split(","), Path(mount.point)))
        elif mount.kind == "cgroup2":
            twos.append(Path(mount.point))
    old = "blkio" if controller == "io" else controller
    for top in twos:
        if controller == "cgroup" or controller in (top / "cgroup.controllers").read_text().split():
            return Hierarchy(top, 2)
    if old in ones:
        return Hierarchy(ones[old], 1)
    known = [*(word for top in twos for word in (top / "cgroup.controllers").read_text().split()), *ones]
    hint = did_you_mean(controller, known, "see /proc/cgroups")
    raise UserError(f"there is no control group controller `{controller}` here", hint, "cgroup")


class Cgroup(Kind):
    """Files of control groups."""

    name = "cgroup"

    def __init__(self) -> None:
        self._used: dict[str, set[Path]] = {}

    def problem(self, target: str) -> str | None:
        if re.fullmatch(r"[\w{}.:@-]+(/[\w{}.:@-]+)*/[a-z_]+\.[\w.]+", target) and ".." not in target.split(
            "/"
        ):
            return None
        return f"`{target}` is not a file of a control group, such as workload/cpu.max"

    def apply(self, journal: Journal, target: str, value: str) -> None:
        group, _, file = target.rpartition("/")
        place = hierarchy(file.partition(".")[0])
        folder = place.top / group
        _make(journal, place, folder, file.partition(".")[0])
        self._used.setdefault(group, set()).add(folder)
        for name, wanted in _written(place, folder, file, value):
            _set(journal, folder / name, target, wanted)
        if difference := self.differs(target, value):
            fact = f"{target} was set to {difference.wanted!r} and reads back as {difference.found!r}"
            raise UserError(fact, "give a value that the kernel takes as it is", str(folder))

    def differs(self, target: str, value: str) -> Difference | None:
        group, _, file = target.rpartition("/")
        place = hierarchy(file.partition(".")[0])
        folder = place.top / group
        for name, wanted in _written(place, folder, file, value):
            found = _found(folder / name, wanted)
            if not _equal(found, wanted):
                return Difference(self.name, target, wanted, found)
        return None

    def members(self, group: str) -> list[Path]:
        """The files that a process writes its number to, to be in the group."""
        return [folder / "cgroup.procs" for folder in sorted(self._used.get(group, ()))]


def _make(journal: Journal, place: Hierarchy, folder: Path, controller: str) -> None:
    """The group and those above it; in version 2, each gives the controller to those below it."""
    for path in reversed([folder, *folder.parents]):
        if not path.is_relative_to(place.top):
            continue
        if not path.is_dir():
            journal.note({"kind": "group", "target": str(path)})
            try:
                path.mkdir()
            except OSError as error:
                raise cannot(f"a control group {path.name}", str(path.parent), error) from None
            if place.version == 1 and controller == "cpuset":
                # Without memory nodes, no process may enter.
                for name in ("cpuset.mems", "cpuset.cpus"):
                    write(path / name, name, read(path.parent / name, name))
        given = path / "cgroup.subtree_control"
        is_above = place.version == 2 and path != folder and controller != "cgroup"
        if is_above and controller not in given.read_text().split():
            journal.note({"kind": "controller", "target": str(given), "controller": controller})
            write(given, f"the controller {controller}", f"+{controller}")
    if not folder.is_dir():
        raise UserError("there is no such group", None, str(folder))


def _written(place: Hierarchy, folder: Path, file: str, value: str) -> list[tuple[str, str]]:
    """Files and what is written to them."""
    value = " ".join(plain_size(word) for word in value.split())
    if place.version == 2 or (folder / file).exists():
        return [(file, value)]
    if file == "cpu.max":
        quota, _, period = value.partition(" ")
        return [
            ("cpu.cfs_period_us", period or str(_PERIOD_US)),
            ("cpu.cfs_quota_us", "-1" if quota == _NO_LIMIT else quota),
        ]
    if file == "cpu.weight":
        return [("cpu.shares", str(int(value) * 1024 // 100))]
    if file == "memory.max":
        return [("memory.limit_in_bytes", "-1" if value == _NO_LIMIT else value)]
    if file == "io.max":
        device, *limits = value.split()
        pairs = [limit.partition("=") for limit in limits]
        return [
            (f"blkio.throttle.{_IO[key]}_device", f"{device} {'0' if number == _NO_LIMIT else number}")
            for key, _, number in pairs
            if key in _IO
        ]
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    hint = did_you_mean(file, names, f"control groups of version 1 have {', '.join(names[:5])} ...")
    raise UserError(f"a control group has no file {file} here", hint, str(folder))


def _set(journal: Journal, path: Path, target: str, wanted: str) -> None:
    if not path.is_file():
        names = sorted(each.name for each in path.parent.iterdir() if each.is_file())
        hint = did_you_mean(path.name, names, "see the files of the group")
        raise UserError(f"a control group has no file {path.name} here", hint, str(path.parent))
    undo = {"kind": "cgroup", "target": target, "path": str(path), "set": wanted}
    journal.note({**undo, "was": _found(path, wanted)})
    write(path, target, wanted)


def _device(value: str) -> str | None:
    """`8:0` of a limit for one device."""
    found = re.match(r"(\d+:\d+)( |$)", value)
    return found[1] if found else None


def _found(path: Path, wanted: str) -> str:
    """The value; of limits for devices the line of that device, and as given if there is none."""
    text = path.read_text()
    device = _device(wanted)
    if device is None:
        return normal(text)
    for line in text.splitlines():
        if line.split()[:1] == [device]:
            return normal(line)
    if path.name == "io.max":
        return f"{device} " + " ".join(f"{key}={_NO_LIMIT}" for key in _IO)
    return f"{device} 0"


def _equal(found: str, wanted: str) -> bool:
    """Whether it is in force: a limit of version 2 may show more words, and sizes are of whole pages."""
    if found == normal(wanted):
        return True
    if _device(wanted) is not None:
        return set(wanted.split()) <= set(found.split())
    if wanted in ("-1", _NO_LIMIT):
        # Version 1 represents it by the largest number of pages.
        return found == _NO_LIMIT or (found.isdecimal() and int(found) >= 1 << 62)
    if found.isdecimal() and wanted.isdecimal():
        return int(found) == int(wanted) // os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PAGE_SIZE")
    return found.split()[:1] == wanted.split()[:1] and len(wanted.split()) == 1 and found.split()[0] != ""


def undo_value(journal: Journal, entry: Entry) -> list[Difference]:
    """Puts a value back; groups do not outlast a restart, unless the system makes them again."""
    path = Path(entry["path"])
    if not path.is_file():
        return []
    found = _found(path, entry["set"])
    if not journal.is_of_this_boot and not _equal(found, entry["set"]):
        return []
    if found != entry["was"]:
        write(path, entry["target"], entry["was"])
    found = _found(path, entry["set"])
    return [] if found == entry["was"] else [Difference("cgroup", entry["target"], entry["was"], found)]


def undo_controller(journal: Journal, entry: Entry) -> list[Difference]:
    """Takes a controller from the groups below again."""
    path = Path(entry["target"])
    if journal.is_of_this_boot and path.is_file() and entry["controller"] in path.read_text().split():
        write(path, f"the controller {entry['controller']}", f"-{entry['controller']}")
    return []


def undo_group(journal: Journal, entry: Entry) -> list[Difference]:
    """Ends who is in a group that was made, and removes it; ourselves, we go to the group above."""
    path = Path(entry["target"])
    for _ in range(_TRIES if journal.is_of_this_boot else 0):
        if not path.is_dir():
            return []
        for pid in map(int, (path / "cgroup.procs").read_text().split()):
            if pid == os.getpid():
                write(path.parent / "cgroup.procs", path.name, str(pid))
            elif pid and (found := processes.process(pid)):
                found.send(signal.SIGKILL)
        with suppress(OSError):
            path.rmdir()
            return []
        time.sleep(_PAUSE_S)
    if not journal.is_of_this_boot:
        # A group of that name belongs to somebody else.
        return []
    pids = [int(word) for word in (path / "cgroup.procs").read_text().split()]
    who = ", ".join(map(processes.named, pids)) or "groups below it"
    return [Difference("cgroup", str(path), "no group", f"it is there, with {who}")]
