"""What a confined process may not do: change files that it did not make, by path or by what it may read."""

from __future__ import annotations

import fcntl
import os
import platform
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sysdock.analysis import sandbox

MACHINES = ("x86_64", "aarch64")
# Version 2 of a file's capabilities, with CAP_SETUID in force (linux/capability.h).
CAPABILITY = struct.pack("<5I", 0x02000001, 1 << 7, 0, 0, 0)
SET_FLAGS = 0x40086602

FORBIDDEN: dict[str, Callable[[Path], object]] = {
    "mode": lambda path: os.chmod(path, 0o4777),
    "owner": lambda path: os.chown(path, 65534, 65534),
    "owner of a link": lambda path: os.lchown(path, 65534, 65534),
    "attribute": lambda path: os.setxattr(path, "user.x", b"x"),
    "capabilities": lambda path: os.setxattr(path, "security.capability", CAPABILITY),
    "times": lambda path: os.utime(path, (1, 1)),
    "flags": lambda path: fcntl.ioctl(os.open(path, os.O_RDONLY), SET_FLAGS, struct.pack("i", 0x10)),
    "writing": lambda path: path.write_text("theirs"),
}


def confined(work: Callable[[], object], own: Path, readable: Path) -> int:
    """The errno with which it fails in a confined process; 0: it does not fail."""
    child = os.fork()
    if child == 0:
        code = 255
        try:
            lacking = sandbox.confine(1 << 40, 1000, [readable, Path(sys.prefix)], own)
            if lacking is None:
                work()
                code = 0
        except OSError as error:
            code = error.errno or 255
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(platform.machine() not in MACHINES, reason="no list of calls for this processor")
@pytest.mark.parametrize("what", list(FORBIDDEN))
def test_a_confined_process_changes_no_file_of_others(tmp_path: Path, what: str) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    for folder in (own, other):
        folder.mkdir()
    victim = other / "victim"
    victim.write_text("precious")
    before = victim.stat()
    assert confined(lambda: FORBIDDEN[what](victim), own, other) in (1, 13)
    after = victim.stat()
    assert (after.st_mode, after.st_uid, after.st_mtime_ns) == (
        before.st_mode,
        before.st_uid,
        before.st_mtime_ns,
    )
    assert (victim.read_text(), os.listxattr(victim)) == ("precious", [])


def test_a_confined_process_writes_into_its_folder(tmp_path: Path) -> None:
    assert confined(lambda: (tmp_path / "a").write_text("x"), tmp_path, tmp_path) == 0
