"""Restrictions of a process before it reads data that may be untrusted."""

from __future__ import annotations

import ctypes
import os
import resource
import signal

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Ends this process when its parent, the process with that id, ends: whatever ends that."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # The parent ended before the kernel was asked to watch it.
        os._exit(1)


def lower_limit(kind: int, most: int) -> None:
    """Sets a limit of the operating system (`resource.RLIMIT_...`); one that is lower already stays."""
    _, hard = resource.getrlimit(kind)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))
