"""Runs a command untraced and measures it, as `time` does; reads /proc/PID/io when it has ended.

A process that has ended stays as a zombie until its parent asks for its status. Until then the kernel still
states what it and the children it waited for have read and written, so the counters are exact.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import IO

from sysdock.checkup.counters import parse_proc_io
from sysdock.checkup.ratio import JobTimes
from sysdock.errors import UserError
from sysdock.recording.caller import as_caller, caller
from sysdock.recording.signals import passed_on
from sysdock.sentences import fact

_NS = 1_000_000_000
_US = 1_000_000
_PATIENCE = 50
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


@dataclass(frozen=True)
class PlainRun:
    """A run: `status` as a shell has it, its times, and its counters, or in words why there are none."""

    status: int
    times: JobTimes
    io: dict[str, int] | None
    no_io: str | None
    started_ns: int
    ended_ns: int


def run_plain(command: Sequence[str], *, as_root: bool = False) -> PlainRun:
    """Runs it with our streams; signals are passed on, and its status is returned (128 + N for a signal).

    Under sudo it runs as the user who called sudo; as_root: as root.
    """
    rights = {} if as_root else as_caller(caller())
    with passed_on(_FORWARDED) as child:
        started_ns, start = time.time_ns(), time.monotonic_ns()
        try:
            process = subprocess.Popen(command, **rights)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UserError(f"cannot be started: {reason}", place=command[0]) from None
        child.started(process.pid)
        counters = _open_counters(process.pid)
        child.wait()
        real = time.monotonic_ns() - start
        ended_ns = time.time_ns()
        io, no_io = _counters(process.pid, counters)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    times = JobTimes(
        user=Fraction(round(usage.ru_utime * _US), _US),
        system=Fraction(round(usage.ru_stime * _US), _US),
        real=Fraction(real, _NS),
        name=" ".join(command),
        source=fact("checkup/run_untraced"),
    )
    code = process.returncode
    return PlainRun(code if code >= 0 else 128 - code, times, io, no_io, started_ns, ended_ns)


def _open_counters(pid: int) -> IO[bytes] | None:
    """The counters, opened while the process lives: those of a zombie belong to root.

    In an exec the kernel closes our pipe, which means that the program has begun, a moment before it gives
    the counters to its user.
    """
    for _ in range(_PATIENCE):
        try:
            return open(f"/proc/{pid}/io", "rb", buffering=0)
        except PermissionError:
            time.sleep(0.001)
        except OSError:
            break
    return None


def _counters(pid: int, opened: IO[bytes] | None) -> tuple[dict[str, int] | None, str | None]:
    place = Path(f"/proc/{pid}/io")
    try:
        if opened is None:
            return parse_proc_io(place.read_text(), str(place)), None
        with opened:
            return parse_proc_io(opened.read().decode(), str(place)), None
    except OSError as error:
        return None, (error.strerror or str(error)).lower()
    except UserError as error:
        return None, error.fact
