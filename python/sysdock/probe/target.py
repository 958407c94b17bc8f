"""The target of a probe: the file system below a directory, and the state of the machine."""

from __future__ import annotations

import os
import platform
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sysdock.errors import UserError
from sysdock.probe.directory_check import Look, look_at

_ESCAPED = re.compile(r"\\([0-7]{3})")
_KEPT = re.compile(r"[A-Za-z0-9:_.]")


@dataclass(frozen=True)
class Target:
    """A directory, and the file system that it is on, as /proc/self/mountinfo says."""

    folder: Path
    mount_point: str
    fs_type: str
    source: str
    options: str
    device: str
    size_bytes: int
    may_write: bool

    @property
    def name(self) -> str:
        """The mount point as systemd writes it in names of units: `srv-db` for /srv/db, `-` for /."""
        return unit_name(self.mount_point)


def target_of(folder: Path, within_s: float = 60.0) -> Target:
    """The file system of a directory; a UserError where it is none, or is not reached in that time."""
    looked = look_at(folder, within_s)
    if not looked.is_directory:
        raise UserError("not a directory", "give a directory of the file system", str(folder))
    return on_mount(looked)


def by_path(folder: Path) -> Target:
    """The file system that a path leads to; it is not asked, so that size and rights are not known."""
    return on_mount(Look(Path(os.path.abspath(folder)), True, 0, False, False))


def on_mount(looked: Look) -> Target:
    """The file system of a directory, from what another process found out about it."""
    place = looked.place
    found = None
    for line in Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines():
        before, _, behind = line.partition(" - ")
        device, _, point, options = before.split(" ")[2:6]
        mount = _plain(point)
        # The last of several mounts on one mount point is visible.
        if place.is_relative_to(mount) and (found is None or len(mount) >= len(found.mount_point)):
            fs_type, source, of_system = (_plain(word) for word in behind.split(" ")[:3])
            every = dict.fromkeys([*options.split(","), *of_system.split(",")])
            where = (place, mount, fs_type, source, ",".join(every), device)
            found = Target(*where, looked.size_bytes, looked.may_write)
    if found is None:
        raise UserError("the kernel does not report where it is mounted", None, str(place))
    return found


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), text)


def unit_name(path: str) -> str:
    """A path as `systemd-escape --path` writes it."""
    parts = [part for part in path.split("/") if part]
    text = "-".join("".join(_escaped(char) for char in part) for part in parts) or "-"
    return f"\\x2e{text[1:]}" if text.startswith(".") else text


def _escaped(char: str) -> str:
    return char if _KEPT.fullmatch(char) else "".join(f"\\x{byte:02x}" for byte in char.encode())


@dataclass(frozen=True)
class ClockReading:
    """When it is, by the clock and since the start of the machine [ns], and by which kernel."""

    time_ns: int
    since_boot_ns: int
    boot_id: str
    kernel: str

    @classmethod
    def now(cls) -> ClockReading:
        """The current reading."""
        boot = "unknown"
        with suppress(OSError):
            boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
        return cls(time.time_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME), boot, platform.release())


@dataclass(frozen=True)
class Busy:
    """The load of the machine: load average of a minute per CPU, and pressure on I/O [%] (None: unknown)."""

    load: float
    io_pressure: float | None

    @classmethod
    def now(cls) -> Busy:
        """The current load."""
        pressure = None
        with suppress(OSError, IndexError, ValueError):
            first = Path("/proc/pressure/io").read_text().splitlines()[0]
            pressure = float(first.split("avg10=")[1].split()[0])
        return cls(round(os.getloadavg()[0] / (os.cpu_count() or 1), 2), pressure)

    def is_above(self, load: float, io_pressure: float) -> bool:
        """Whether one of the two is above its limit."""
        return self.load > load or (self.io_pressure or 0.0) > io_pressure
