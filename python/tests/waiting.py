"""What another process does, and waiting for it; no test fails because a machine is slow."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
import time
from collections.abc import Callable
from pathlib import Path

# However busy the machine is, nothing that a test waits for takes as long.
PATIENCE_S = 600


def wait_for(condition: Callable[[], object], what: str = "a condition", every_s: float = 0.02) -> None:
    """Waits until the condition holds; `what` names it, after "waiting for". AssertionError after `PATIENCE_S`."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"gave up waiting for {what} after {PATIENCE_S} s"
        time.sleep(every_s)


def children(pid: int) -> list[int]:
    """Processes that a process has started."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


def cpu_s(pid: int) -> float:
    """CPU time of a process, in ticks of the kernel: how far it is, however busy the machine is [s]."""
    fields = _behind_the_name(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def state_of(pid: int) -> str:
    """The kernel's letter for the state of a process: R, S, D, T, Z."""
    return _behind_the_name(pid)[0]


def is_running(pid: int) -> bool:
    """Whether a process is neither a zombie, which holds nothing, nor gone."""
    try:
        return state_of(pid) not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _behind_the_name(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the third on; the name before them may contain anything."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def unread(descriptor: int) -> int:
    """Bytes in a pipe that nobody has read yet."""
    return struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)))[0]
