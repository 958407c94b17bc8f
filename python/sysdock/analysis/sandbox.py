"""Takes away from this process what a stranger's SQL must not have.

The engine's own settings are not a sandbox (its documentation says so, and its memory limit was exceeded 23
times over in a test), so the operating system sets the limits: memory, CPU time, no new privileges, and
Landlock where the kernel has it, and seccomp for what Landlock does not know of (`refused_calls.py`). They
hold for the calling thread and the threads it starts: call `confine` before the engine is connected.

Sources: prctl(2), setrlimit(2), landlock(7) and linux/landlock.h.
"""

from __future__ import annotations

import ctypes
import os
import resource
from collections.abc import Iterable
from pathlib import Path

from sysdock.analysis.refused_calls import refuse_calls
from sysdock.recording.process import lower_limit

_PR_SET_NO_NEW_PRIVS = 38
# The numbers are the same on all architectures except Alpha.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
# Write, read, list, remove folders and files, make folders and files, truncate; not: execute, make devices,
# sockets and links.
_READ_AND_WRITE = sum(1 << bit for bit in (1, 2, 3, 4, 5, 7, 8, 14))
# Number of file-system rights that each version of the interface knows.
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
_RIGHTS_SINCE_5 = 16
# Files that the engine reads when it connects; it aborts if it cannot read the first one (2.0.0).
_ABOUT_THE_MACHINE = (
    "/proc/self/cgroup",
    "/proc/meminfo",
    "/proc/stat",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
)


class _RulesetAttr(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneathAttr(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def confine(memory_bytes: int, cpu_seconds: int, readable: Iterable[Path], writable: Path) -> str | None:
    """Limits this process for good; returns why Landlock or seccomp is not in force, or None where both are.

    memory_bytes: address space; cpu_seconds: CPU time of all threads; `readable` and `writable`: the only
    folders that can be reached from here on, and a few facts about the machine. A limit that is already
    lower stays.
    """
    lower_limit(resource.RLIMIT_AS, memory_bytes)
    lower_limit(resource.RLIMIT_CPU, cpu_seconds)
    lower_limit(resource.RLIMIT_CORE, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs was refused")
    lacking = []
    try:
        _landlock(libc, readable, writable)
    except OSError as error:
        lacking.append(f"Landlock is not available here: {error.strerror}")
    # After Landlock: the filter need not know its calls.
    if why := refuse_calls(libc):
        lacking.append(why)
    return "; ".join(lacking) or None


def _call(libc: ctypes.CDLL, number: int, *arguments: object) -> int:
    result: int = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, os.strerror(errno))
    return result


def _landlock(libc: ctypes.CDLL, readable: Iterable[Path], writable: Path) -> None:
    version = _call(libc, _CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_RULESET_VERSION))
    every_right = (1 << _RIGHTS.get(version, _RIGHTS_SINCE_5)) - 1
    attr = _RulesetAttr(every_right, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _call(libc, _CREATE_RULESET, ctypes.byref(attr), ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for place in readable:
            _allow(libc, ruleset, place, _READ_FILE | _READ_DIR)
        _allow(libc, ruleset, writable, every_right & _READ_AND_WRITE)
        for fact in filter(os.path.exists, _ABOUT_THE_MACHINE):
            _allow(libc, ruleset, Path(fact), _READ_FILE | (_READ_DIR if os.path.isdir(fact) else 0))
        _call(libc, _RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, place: Path, rights: int) -> None:
    descriptor = os.open(place, os.O_PATH | os.O_CLOEXEC)
    try:
        beneath = _PathBeneathAttr(rights, descriptor)
        _call(
            libc,
            _ADD_RULE,
            ctypes.c_int(ruleset),
            ctypes.c_int(_RULE_PATH_BENEATH),
            ctypes.byref(beneath),
            ctypes.c_uint32(0),
        )
    finally:
        os.close(descriptor)
