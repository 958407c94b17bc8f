"""Settings that are a value in a file of the kernel: `sysctl:`, `sysfs:` and `cpu:`.

`sysctl:vm.dirty_bytes`: a name as of sysctl(8), with dots or slashes. Some names are a pair, of which setting
one sets the other to 0 (`vm.dirty_bytes` and `vm.dirty_ratio`); the undo brings back the one that was in
force. `sysfs:/sys/block/{device}/queue/scheduler`: any file below /sys; of a list of choices, the chosen one
is its value. `cpu:1`: `online` or `offline`. CPU 0 is refused, as many machines cannot do without.

Sizes may be written as `64MiB` (KiB, MiB, GiB).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sysdock.errors import UserError, did_you_mean
from sysdock.experiment.state.journal import Entry, Journal
from sysdock.experiment.state.kind import Difference, Kind, cannot, normal

_SYS = Path("/proc/sys")
_CPUS = Path("/sys/devices/system/cpu")
# Setting one sets the other to 0 (mm/page-writeback.c, mm/util.c).
_PAIRS = {
    "vm/dirty_bytes": "vm/dirty_ratio",
    "vm/dirty_background_bytes": "vm/dirty_background_ratio",
    "vm/overcommit_kbytes": "vm/overcommit_ratio",
}
_PARTNERS = {**_PAIRS, **{ratio: size for size, ratio in _PAIRS.items()}}
_SIZE = re.compile(r"(\d+) ?([KMG])iB")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def plain_size(value: str) -> str:
    """`64MiB` as bytes; any other value as it is."""
    found = _SIZE.fullmatch(value.strip())
    return str(int(found[1]) * _UNITS[found[2]]) if found else value


class Value(Kind):
    """A value in a file. What a kind adds is where the file is."""

    def path(self, target: str) -> Path:
        """Its path; a UserError if this machine has none."""
        raise NotImplementedError

    def asked(self, value: str) -> str:
        """The text that is written."""
        return plain_size(value)

    def partner(self, target: str) -> tuple[str, Path] | None:
        """The setting that this one sets to 0, and where it is."""
        return None

    def apply(self, journal: Journal, target: str, value: str) -> None:
        path = self.path(target)
        undo = {"kind": "value", "of": self.name, "target": target, "path": str(path)}
        undo |= {"was": read(path, target), "set": self.asked(value)}
        if other := self.partner(target):
            undo |= {"other": other[0], "other_path": str(other[1]), "other_was": read(other[1], other[0])}
        journal.note(undo)
        write(path, target, self.asked(value))
        if difference := self.differs(target, value):
            fact = f"{target} was set to {difference.wanted!r} and reads back as {difference.found!r}"
            raise UserError(fact, "give a value that the kernel takes as it is", str(path))

    def differs(self, target: str, value: str) -> Difference | None:
        found = read(self.path(target), target)
        wanted = normal(self.asked(value))
        return None if _same(found, wanted) else Difference(self.name, target, wanted, found)


class Sysctl(Value):
    """Settings below /proc/sys."""

    name = "sysctl"

    def problem(self, target: str) -> str | None:
        if not re.fullmatch(r"[\w{}-]+([./][\w{}.:/*@-]+)+", target) or ".." in target:
            return f"`{target}` is not the name of a sysctl, such as vm.dirty_bytes"
        return None

    def path(self, target: str) -> Path:
        path = _SYS / self._slashed(target)
        if not path.is_file():
            raise UserError(f"there is no sysctl `{target}`", did_you_mean(target, _names(), "see sysctl -a"))
        return path

    def partner(self, target: str) -> tuple[str, Path] | None:
        other = _PARTNERS.get(self._slashed(target))
        if other is None or not (_SYS / other).is_file():
            return None
        return other.replace("/", "."), _SYS / other

    def _slashed(self, target: str) -> str:
        """The form of sysctl(8): if a slash comes first, dots are part of names."""
        if "/" in target.partition(".")[0]:
            return target
        return target.replace(".", "\0").replace("/", ".").replace("\0", "/")


class Sysfs(Value):
    """Files below /sys."""

    name = "sysfs"

    def problem(self, target: str) -> str | None:
        if not target.startswith("/sys/") or ".." in target.split("/"):
            return f"`{target}` is not a path below /sys"
        return None

    def path(self, target: str) -> Path:
        path = Path(target)
        if not path.is_file():
            above = next(parent for parent in path.parents if parent.exists())
            names = [str(above / name) for name in sorted(os.listdir(above))]
            hint = did_you_mean(target, names, f"{above} is there, and what is below it is not")
            raise UserError("there is no such file", hint, target)
        return path


class Cpu(Value):
    """CPUs that are switched on and off."""

    name = "cpu"

    def problem(self, target: str) -> str | None:
        if re.fullmatch(r"\{\w+\}", target):
            return None
        if not target.isdecimal():
            return f"`{target}` is not the number of a CPU"
        return (
            "CPU 0 cannot be taken offline, as many machines cannot do without it"
            if int(target) == 0
            else None
        )

    def path(self, target: str) -> Path:
        if problem := self.problem(target):
            raise UserError(problem, "name another CPU", f"cpu:{target}")
        path = _CPUS / f"cpu{int(target)}" / "online"
        if not path.is_file():
            fact = f"CPU {target} does not exist, or cannot be taken offline"
            present = (_CPUS / "present").read_text().strip()
            raise UserError(fact, f"the machine has CPUs {present}", str(path.parent))
        return path

    def asked(self, value: str) -> str:
        words = {"online": "1", "offline": "0", "1": "1", "0": "0"}
        if value not in words:
            raise UserError(f"`{value}` is not a state of a CPU", "it is `online` or `offline`", "cpu")
        return words[value]


def read(path: Path, what: str) -> str:
    """The value in a file: as it is, or of a list of choices below /sys the chosen word."""
    try:
        text = path.read_text(errors="surrogateescape").rstrip("\n")
        return normal(text) if path.is_relative_to("/sys") else text
    except OSError as error:
        fact = f"{what} cannot be read ({(error.strerror or '').lower()}), so it could not be put back"
        raise UserError(fact, "only what can be read can be a setting of an experiment", str(path)) from None


def write(path: Path, what: str, value: str) -> None:
    """Writes the value at once, because the kernel takes each write as a whole value."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(handle, f"{value}\n".encode(errors="surrogateescape"))
        finally:
            os.close(handle)
    except OSError as error:
        raise cannot(what, str(path), error) from None


def undo(journal: Journal, entry: Entry) -> list[Difference]:
    """Writes the value that was there.

    A restart has reset it; only where the value of the experiment came back with it, it is replaced.
    """
    path = Path(entry["path"])
    if not path.is_file():
        # With its device or its group.
        return []
    now = read(path, entry["target"])
    if not journal.is_of_this_boot and not _same(now, normal(entry["set"])):
        return []
    if "other" in entry:
        return _undo_pair(entry, now)
    if now != entry["was"]:
        write(path, entry["target"], entry["was"])
    return _left(entry["of"], path, entry["target"], entry["was"])


def _undo_pair(entry: Entry, now: str) -> list[Difference]:
    """Writes the one of the two that was in force: not 0."""
    path, other = Path(entry["path"]), Path(entry["other_path"])
    was, other_was = entry["was"], entry["other_was"]
    if (now, read(other, entry["other"])) != (was, other_was):
        # If both were 0, the percentage is the one that may be set.
        if was != "0" or (other_was == "0" and entry["target"].endswith("ratio")):
            write(path, entry["target"], was)
        else:
            write(other, entry["other"], other_was)
    return [
        *_left(entry["of"], path, entry["target"], was),
        *_left(entry["of"], other, entry["other"], other_was),
    ]


def _left(kind: str, path: Path, target: str, was: str) -> list[Difference]:
    found = read(path, target)
    return [] if found == was else [Difference(kind, target, was, found)]


def _same(found: str, wanted: str) -> bool:
    if normal(found) == normal(wanted):
        return True
    try:
        return [int(word) for word in found.split()] == [int(word) for word in wanted.split()]
    except ValueError:
        return False


def _names() -> list[str]:
    """All sysctls that there are, with dots."""
    return [
        os.path.relpath(os.path.join(above, name), _SYS).replace("/", ".")
        for above, _, names in os.walk(_SYS)
        for name in names
    ]
