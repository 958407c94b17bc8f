"""A FUSE file system that hangs: its server, which is this process, answers nothing, or nothing from some request on."""

from __future__ import annotations

import errno
import os
import select
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

# Requests (linux/fuse.h).
_LOOKUP, _FORGET, _GETATTR, _STATFS, _INIT, _OPENDIR = 1, 2, 3, 17, 26, 27
_READDIR, _RELEASEDIR, _INTERRUPT, _DESTROY, _BATCH_FORGET = 28, 29, 36, 38, 42
MKDIR = 9
_MOUNT = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"test", sys.argv[1].encode(), b"fuse", 0, sys.argv[2].encode()):
    sys.exit(f"errno {ctypes.get_errno()}")
"""


@contextmanager
def hung(point: Path, at: int | None = None) -> Iterator[None]:
    """A file system at `point` that answers nothing; with `at`, all but that request: an empty directory.

    Skips the test where it cannot be mounted.
    """
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount FUSE")
    if not os.path.exists("/dev/fuse"):
        pytest.skip("no /dev/fuse")
    server = os.open("/dev/fuse", os.O_RDWR)
    stop, thread = threading.Event(), None
    try:
        options = f"fd={server},rootmode=40000,user_id=0,group_id=0,allow_other"
        mount = [sys.executable, "-c", _MOUNT, str(point), options]
        done = subprocess.run(mount, pass_fds=[server], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"FUSE cannot be mounted: {done.stderr}")
        if at is not None:
            thread = threading.Thread(target=_serve, args=(server, at, stop))
            thread.start()
        yield
    finally:
        stop.set()
        if thread is not None:
            thread.join()
        # What still waits for an answer gets an error.
        os.close(server)
        subprocess.run(["umount", "-l", point], check=False, capture_output=True)


def _serve(server: int, at: int, stop: threading.Event) -> None:
    while not stop.is_set():
        if not select.select([server], [], [], 0.05)[0]:
            continue
        with suppress(OSError):
            request = os.read(server, 1 << 20)
            _, kind, unique = struct.unpack_from("<IIQ", request)
            if kind not in (at, _FORGET, _INTERRUPT, _BATCH_FORGET, _DESTROY):
                error, data = _answer(kind)
                os.write(server, struct.pack("<IiQ", 16 + len(data), -error, unique) + data)


def _answer(kind: int) -> tuple[int, bytes]:
    """The error and the content of an answer, as an empty directory gives it."""
    if kind == _INIT:
        return 0, struct.pack("<IIIIHHIIHH", 7, 31, 1 << 17, 0, 12, 9, 1 << 17, 1, 0, 0).ljust(64, b"\0")
    if kind == _GETATTR:
        times = (0,) * 6
        return 0, struct.pack(
            "<QII6Q10I", 0, 0, 0, 1, 4096, 8, *times[:3], *times[:3], 0o40755, 2, 0, 0, 0, 4096, 0
        )
    if kind == _STATFS:
        return 0, struct.pack("<5Q4I", *(1 << 20,) * 5, 4096, 255, 4096, 0).ljust(80, b"\0")
    if kind == _OPENDIR:
        return 0, bytes(16)
    if kind in (_READDIR, _RELEASEDIR):
        return 0, b""
    return (errno.ENOENT if kind == _LOOKUP else errno.ENOSYS), b""
