"""Users that nobody else is, for the servers of an experiment that root runs.

The number is of a range that systemd leaves unused (https://systemd.io/UIDS-GIDS), has no entry in passwd and
group, no process has it, and the lock on a file says that no other experiment does. Nothing in /etc changes.
"""

from __future__ import annotations

import fcntl
import grp
import os
import pwd
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from sysdock.errors import UserError, refusal
from sysdock.own_folder import create, open_existing
from sysdock.sentences import fact

_NUMBERS = range(60706, 61184)
_LOCKS = Path("/run/sysdock/users")
_IDS = ("Uid:", "Gid:", "Groups:")


@dataclass(frozen=True)
class OwnUser:
    """A user and a group of this number, ours as long as the lock is held."""

    number: int
    lock: IO[bytes]


def take() -> OwnUser:
    """A free number, locked; UserError where all are in use."""
    taken = _of_processes()
    with suppress(UserError):
        create(_LOCKS).close()
    folder = open_existing(_LOCKS)
    try:
        for number in _NUMBERS:
            if number in taken or _has_entry(number):
                continue
            lock = _locked(folder.descriptor, number)
            # The experiment that had the lock may have ended since the first look, and left a process.
            if lock and number not in _of_processes():
                return OwnUser(number, lock)
    finally:
        folder.close()
    raise refusal(fact("experiment/no_free_user"))


def _locked(folder: int, number: int) -> IO[bytes] | None:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.fdopen(os.open(str(number), flags, 0o600, dir_fd=folder), "r+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def _has_entry(number: int) -> bool:
    for look_up in (pwd.getpwuid, grp.getgrgid):
        with suppress(KeyError):
            look_up(number)
            return True
    return False


def _of_processes() -> set[int]:
    """Numbers of all users and groups that processes have."""
    return {number for pid in os.listdir("/proc") if pid.isdecimal() for number in _numbers(pid)}


def _numbers(pid: str) -> Iterator[int]:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            if line.startswith(_IDS):
                yield from map(int, line.split()[1:])
