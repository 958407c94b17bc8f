"""What a program can find out about how it was started, as one JSON object: name -> value. Run as a command."""

from __future__ import annotations

import array
import ctypes
import fcntl
import json
import os
import resource
import signal
import socket
import stat
import sys
import termios
import time
from pathlib import Path

# prctl(2): what it asks for, by its number.
ATTRIBUTES = {
    "signal_at_parents_death": 2,
    "dumpable": 3,
    "keep_capabilities": 7,
    "timing": 13,
    "name": 16,
    "secure_bits": 27,
    "timer_slack": 30,
    "adopts_orphans": 37,
    "no_new_privileges": 39,
    "no_huge_pages": 42,
}
# Fields of /proc/self/status. TracerPid is left out: strace is a tracer.
STATUS = "Umask Uid Gid Groups SigPnd ShdPnd SigBlk SigIgn SigCgt CapInh CapPrm CapEff CapBnd CapAmb Seccomp Cpus_allowed Mems_allowed"
LIBC = ctypes.CDLL(None, use_errno=True)


def attribute(number: int) -> int:
    """One attribute of the process. Where it is returned by way of a pointer, what the pointer then has."""
    value = ctypes.c_int(0)
    if number in {2, 37}:
        LIBC.prctl(number, ctypes.byref(value), 0, 0, 0)
        return value.value
    if number == 16:
        name = ctypes.create_string_buffer(16)
        LIBC.prctl(number, name, 0, 0, 0)
        return name.value.decode()
    return LIBC.prctl(number, 0, 0, 0, 0)


def descriptor(fd: int) -> list[object] | None:
    """What lies behind a descriptor: its kind, flags, position. None: it is closed."""
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    position = os.lseek(fd, 0, os.SEEK_CUR) if stat.S_ISREG(status.st_mode) else None
    return [fd, stat.S_IFMT(status.st_mode), flags, fcntl.fcntl(fd, fcntl.F_GETFD), position, os.isatty(fd)]


def descriptors() -> list[list[object]]:
    """All that are open, but for the one that the list is read by."""
    return [found for fd in range(256) if (found := descriptor(fd)) is not None]


def children() -> str:
    """Whether there is a child that the program did not start."""
    try:
        return str(os.waitpid(-1, os.WNOHANG))
    except ChildProcessError:
        return "none"


def terminal() -> dict[str, object]:
    """What the terminal says, where standard input is one."""
    if not os.isatty(0):
        return {}
    size = array.array("H", [0] * 4)
    fcntl.ioctl(0, termios.TIOCGWINSZ, size)
    return {
        "foreground": os.tcgetpgrp(0) == os.getpgrp(),
        "size": size.tolist(),
        "modes": [str(part) for part in termios.tcgetattr(0)],
    }


def observe() -> dict[str, object]:
    """All of it."""
    with open("/proc/self/status") as lines:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in lines if ":\t" in line)
    facts: dict[str, object] = {f"status {name}": status[name] for name in STATUS.split()}
    facts |= {
        f"limit {name}": resource.getrlimit(getattr(resource, name))
        for name in dir(resource)
        if name.startswith("RLIMIT_")
    }
    facts |= {name: attribute(number) for name, number in ATTRIBUTES.items()}
    facts |= {
        f"namespace {name}": os.readlink(f"/proc/self/ns/{name}")
        for name in sorted(os.listdir("/proc/self/ns"))
    }
    facts |= {f"timer {number}": signal.getitimer(number) for number in range(3)}
    for name in (
        "oom_score_adj",
        "coredump_filter",
        "personality",
        "loginuid",
        "sessionid",
        "timens_offsets",
    ):
        if os.path.exists(f"/proc/self/{name}"):
            facts[name] = Path(f"/proc/self/{name}").read_text()
    return facts | {
        "arguments": sys.orig_argv,
        "environment": {name: value for name, value in os.environ.items() if name != "_"},
        "directory": os.getcwd(),
        "descriptors": descriptors(),
        "children": children(),
        "niceness": os.getpriority(os.PRIO_PROCESS, 0),
        "scheduler": [os.sched_getscheduler(0), os.sched_getparam(0).sched_priority],
        "io priority": LIBC.syscall(252, 1, 0),
        "processors": sorted(os.sched_getaffinity(0)),
        "terminal": terminal(),
        "host": socket.gethostname(),
        "program": os.readlink("/proc/self/exe"),
        "root": os.readlink("/proc/self/root"),
        "clock": time.get_clock_info("monotonic").implementation,
        "session keyring": LIBC.syscall(250, 0, -3, 0),
    }


if __name__ == "__main__":
    json.dump(observe(), sys.stdout)
