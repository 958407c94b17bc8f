"""Checks a directory whose file system may hang, with a time limit."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sysdock.errors import UserError

# A call on a file system that hangs may never return, so another process makes it, which can be abandoned.
_LOOK = """
import json, os, sys
try:
    place = os.path.realpath(sys.argv[1], strict=True)
    size = os.statvfs(place)
    size_bytes = size.f_frsize * size.f_blocks
    may_write = os.access(place, os.W_OK | os.X_OK, effective_ids=True)
    is_there = [os.path.isfile(os.path.join(place, name)) for name in sys.argv[2:]]
    print(json.dumps([0, place, os.path.isdir(place), size_bytes, may_write, all(is_there)]))
except OSError as error:
    print(json.dumps([error.errno or 5]))
"""
# Time for a killed process to be gone [s].
_GONE_S = 2.0
_PAUSE_S = 0.02


class NoAnswer(UserError):
    """The file system did not answer in time."""

    def __init__(self, within_s: float, place: str | None = None) -> None:
        fact = f"the file system did not answer within {within_s:g} s"
        super().__init__(fact, "see what hangs: `sysdock top`, the kernel's log, the server", place)


@dataclass(frozen=True)
class Look:
    """The result of checking a directory."""

    place: Path
    is_directory: bool
    size_bytes: int
    may_write: bool
    has_files: bool


def look_at(folder: Path, within_s: float, files: Sequence[str] = ()) -> Look:
    """Checks a directory, and whether it has these files.

    UserError: it cannot be reached; NoAnswer: nor was it known after so many seconds that it cannot.
    """
    # The path is made absolute here, so that the other process depends on nothing.
    command = [sys.executable, "-I", "-S", "-c", _LOOK, os.path.abspath(folder), *files]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
    output, _ = printed(process, within_s, str(folder))
    number, *found = json.loads(output or f"[{errno.EIO}]")
    if number:
        raise UserError(f"cannot be probed: {os.strerror(number).lower()}", None, str(folder))
    place, *others = found
    return Look(Path(place), *others)


def printed(process: subprocess.Popen[Any], within_s: float, place: str | None = None) -> tuple[Any, Any]:
    """Output of a process on both streams. NoAnswer: it does not end in that time; then it is ended."""
    try:
        return process.communicate(timeout=within_s)
    except subprocess.TimeoutExpired:
        _end(process)
        raise NoAnswer(within_s, place) from None
    except BaseException:
        _end(process)
        raise


def _end(process: subprocess.Popen[Any]) -> None:
    """First asks it, and what it has started, to clean up. What hangs in the kernel cannot be waited for."""
    for number, patience_s in ((signal.SIGTERM, 5.0), (signal.SIGKILL, _GONE_S)):
        _signal(process, number)
        if _has_ended(process, patience_s):
            break
    # While it is not waited for, its number, which is that of its group, is no one else's.
    _signal(process, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(0.1)
    # Nor is it as long as there is somebody in the group.
    until = time.monotonic() + _GONE_S
    while _signal(process, 0) and time.monotonic() < until:
        time.sleep(_PAUSE_S)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _signal(process: subprocess.Popen[Any], number: int) -> bool:
    """A signal to its group; whether there is one."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
        return True
    return False


def _has_ended(process: subprocess.Popen[Any], patience_s: float) -> bool:
    """Whether it ends in this time; it is not waited for."""
    until = time.monotonic() + patience_s
    while True:
        with suppress(ChildProcessError):
            if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                if time.monotonic() > until:
                    return False
                time.sleep(_PAUSE_S)
                continue
        return True
