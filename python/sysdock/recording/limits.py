"""Limits for recordings that were not made by this user on this machine.

A small file can hold much: nine megabytes of Parquet with long strings took fifteen gigabytes of memory. The
engine's own memory limit is not enough (it was exceeded 23 times over in a test), so the command line sets
those of the operating system too (`sysdock.cli.limited`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sysdock.errors import UserError
from sysdock.own_files import own_root
from sysdock.recording.made_here import is_noted

if TYPE_CHECKING:
    from sysdock.recording.manifest import Recording

# With this value the limits are off, for a large recording of somebody who is trusted. A number is the least
# time in seconds, for a busy machine.
SWITCH, OFF = "SYSDOCK_LIMITS", "off"
_LEAST_MEMORY, _LEAST_SECONDS, MOST_SECONDS = 2 << 30, 15, 600
# A large file costs its sender something as well, and may use more: up to 256 MB and 48 MB it gets what the
# smallest gets.
_MEMORY_PER_BYTE, _BYTES_PER_SECOND = 8, 3_200_000
_THREADS = 4
_SPILLED_MB = 4096


@dataclass(frozen=True)
class Limits:
    """Limits of one process: memory for data in bytes, and elapsed time in seconds."""

    memory_bytes: int
    seconds: int

    @property
    def threads(self) -> int:
        """Threads of the engine. Each has a stack, which counts as data."""
        return min(os.cpu_count() or 1, _THREADS)

    def engine_settings(self) -> dict[str, str]:
        """Limits of the engine: half of the memory, because it uses more than it counts, and half of the
        time.
        """
        return {
            "memory_limit": f"{self.memory_bytes // 2 >> 20}MB",
            "threads": str(self.threads),
            "max_temp_directory_size": f"{_SPILLED_MB}MB",
            "max_execution_time": str(self.seconds * 1000 // 2),
        }

    def __str__(self) -> str:
        return f"{self.memory_bytes >> 20:,} MB of memory and {self.seconds} s"


def limits_of(recording: Recording) -> Limits | None:
    """The limits for a recording; None where it was made here, or the user has switched them off."""
    if os.environ.get(SWITCH) == OFF or made_here(recording):
        return None
    size = sum(recording.bytes_on_disk(table) for table in recording.tables)
    memory = max(_LEAST_MEMORY, min(_MEMORY_PER_BYTE * size, _memory_of_machine() // 2))
    return Limits(memory, min(max(_least_seconds(), size // _BYTES_PER_SECOND), MOST_SECONDS))


def limits_of_know_how(root: Path) -> Limits | None:
    """The limits for SQL of this know-how; None where it comes with sysdock, or the user has switched them
    off.
    """
    if os.environ.get(SWITCH) == OFF or root.resolve() == own_root().resolve():
        return None
    return Limits(_memory_of_machine() // 2, MOST_SECONDS)


def _least_seconds() -> int:
    wanted = os.environ.get(SWITCH, "")
    if wanted and not wanted.isdecimal():
        raise UserError(f"{SWITCH}={wanted}: not understood", f"{SWITCH}={OFF}, or a number of seconds")
    return max(_LEAST_SECONDS, int(wanted or 0))


def made_here(recording: Recording) -> bool:
    """Whether the folder belongs to this user or to root, and was written on this machine."""
    return _is_owned(recording) and is_noted(recording.folder)


def is_trusted(recording: Recording) -> bool:
    """Whether it needs no limits, or is a lake of this user or root.

    A lake is large, and many machines write it: limits of time and memory stay, but its columns are read as
    they are. To test each value for NULL would keep an engine from leaving out what a question does not need.
    """
    return limits_of(recording) is None or (recording.is_of_many_hosts and _is_owned(recording))


def _is_owned(recording: Recording) -> bool:
    """Whether the folder belongs to this user or to root."""
    try:
        return os.stat(recording.folder).st_uid in (os.geteuid(), 0)
    except OSError:
        return False


def this_host() -> str | None:
    """The name of this machine, as recorders write it."""
    try:
        return Path("/proc/sys/kernel/hostname").read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None


def _memory_of_machine() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
