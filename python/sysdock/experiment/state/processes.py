"""Processes by number and start time, as a number alone may soon be another process's."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# A process and all that it starts carry it in their environment: who they belong to.
MARK = "SYSDOCK_EXPERIMENT"
_PAUSE_S = 0.02


@dataclass(frozen=True)
class Process:
    """A process: `start` is in clock ticks since boot, as /proc/PID/stat has it."""

    pid: int
    start: int

    def alive(self) -> bool:
        """Whether it runs; one that has ended and whose status no one read does not."""
        now = _stat(self.pid)
        return now is not None and now.process == self

    def send(self, number: int) -> None:
        """A signal, if it still is the same process."""
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(self.pid)
            try:
                if self.alive():
                    signal.pidfd_send_signal(handle, number)
            finally:
                os.close(handle)


@dataclass(frozen=True)
class _Stat:
    process: Process
    parent: int
    session: int


def boot() -> str:
    """Which boot of the machine this is."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def process(pid: int) -> Process | None:
    """The process that has this number now; None where none runs."""
    now = _stat(pid)
    return None if now is None else now.process


def named(pid: int) -> str:
    """`nginx (4242)`, for messages."""
    try:
        return f"{Path(f'/proc/{pid}/comm').read_text().strip()} ({pid})"
    except OSError:
        return f"process {pid}"


def belonging(leader: Process, mark: str) -> list[Process]:
    """Processes of a session leader: itself, all below it, its session, and processes with its mark.

    Where the leader has ended, its number may already lead another session. Then a process of the session
    belongs to it only if it has no environment any more: servers that show their state in ps overwrite it.
    """
    stats = _stats()
    numbers = {found.process.pid: found.process for found in stats}
    own = _carrying(mark, stats)
    session = {found.process.pid for found in stats if found.session == leader.pid}
    if numbers.get(leader.pid) == leader:
        own |= session
    elif leader.pid not in numbers:
        own |= {pid for pid in session if not any(_environment(numbers[pid]))}
    return _with_all_below(own, stats)


def marked(mark: str) -> list[Process]:
    """Processes with a mark, and all below them."""
    stats = _stats()
    return _with_all_below(_carrying(mark, stats), stats)


def _stats() -> list[_Stat]:
    return [found for found in map(_stat, _pids()) if found is not None]


def _carrying(mark: str, stats: Iterable[_Stat]) -> set[int]:
    wanted = f"{MARK}={mark}".encode()
    return {found.process.pid for found in stats if wanted in _environment(found.process)}


def _with_all_below(pids: set[int], stats: Sequence[_Stat]) -> list[Process]:
    own = set(pids)
    while below := {found.process.pid for found in stats if found.parent in own} - own:
        own |= below
    return [found.process for found in stats if found.process.pid in own - {os.getpid()}]


def gone(wanted: Iterable[Process], within_s: float) -> list[Process]:
    """Waits for their end; those that still run after that time."""
    until = time.monotonic() + within_s
    left = list(wanted)
    while (left := [each for each in left if each.alive()]) and time.monotonic() < until:
        time.sleep(_PAUSE_S)
    return left


def users_below(folder: Path) -> list[str]:
    """Processes that have a file below a folder open, or work there."""
    prefix = f"{folder}/"
    found = []
    for pid in _pids():
        base = Path(f"/proc/{pid}")
        with suppress(OSError):
            places = [base / "cwd", base / "root", base / "exe", *(base / "fd").iterdir()]
            if any(f"{_read_link(place)}/".startswith(prefix) for place in places):
                found.append(named(pid))
    return found


def with_mount(device: str) -> list[str]:
    """Processes for which a device is mounted, wherever; others may have mounts of their own."""
    number = os.stat(device).st_rdev
    wanted = f"{os.major(number)}:{os.minor(number)}"
    found = []
    for pid in _pids():
        with suppress(OSError):
            text = Path(f"/proc/{pid}/mountinfo").read_text(errors="surrogateescape")
            # proc_pid_mountinfo(5). btrfs has a number of its own, and the device by name after the hyphen.
            lines = (line.split() for line in text.splitlines())
            if any(words[2] == wanted or device in words[words.index("-") :] for words in lines):
                found.append(named(pid))
    return found


def _read_link(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _environment(of: Process) -> list[bytes]:
    """Its variables; a single one without a meaning for a process that we may not read."""
    try:
        return Path(f"/proc/{of.pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return [b"?"]


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _stat(pid: int) -> _Stat | None:
    """From /proc/PID/stat (proc_pid_stat(5)); None for one that has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    # The name is in brackets and may contain brackets itself.
    fields = text.rpartition(")")[2].split()
    if fields[0] in "ZX":
        return None
    return _Stat(Process(pid, int(fields[19])), int(fields[1]), int(fields[3]))
