"""Waits for what another process does; no test fails because a machine is slow."""

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


def cpu_s(pid: int) -> float:
    """Time that a process has been on a CPU, which says how far it is on a machine of any load [s]."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def state_of(pid: int) -> str:
    """The kernel's letter for the state of a process: R, S, D, T, Z."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def unread(descriptor: int) -> int:
    """Bytes in a pipe that nobody has read yet."""
    return struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)))[0]
