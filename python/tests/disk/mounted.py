"""File systems in image files, mounted through loop devices, and scans of them."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from sysdock.library import Library
from sysdock.recording import Recording, connect
from sysdock.recording.native import find_native

MIB = 1 << 20


@contextlib.contextmanager
def mounted(image: Path, make: list[str], size: int, options: str = "") -> Iterator[Path]:
    """Makes a file system with the command `make IMAGE`, and mounts it; gives where."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    if not shutil.which(make[0]):
        pytest.skip(f"no {make[0]}: tools/setup dev")
    image.touch()
    os.truncate(image, size)
    subprocess.run([*make, image], check=True, capture_output=True)
    # Where everybody may go.
    point = Path(tempfile.mkdtemp(prefix="sysdock-mount-"))
    point.chmod(0o755)
    words = ["mount", "-o", ",".join(filter(None, ("loop", options))), image, point]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        point.rmdir()
        pytest.skip(f"this machine mounts none: {done.stderr.strip()}")
    try:
        yield point
    finally:
        subprocess.run(["umount", point], check=True)
        point.rmdir()


def interleaved(folder: Path, files: int, pieces: int, piece: int) -> None:
    """Files that got a piece each by turns, with holes: in as many fragments on any file system."""
    folder.mkdir()
    opened = [os.open(folder / f"part{number}", os.O_RDWR | os.O_CREAT) for number in range(files)]
    for number in range(pieces):
        for file in opened:
            os.posix_fallocate(file, 2 * number * piece, piece)
    for file in opened:
        os.close(file)


def fill(root: Path) -> None:
    """Files of many kinds: small and large, with holes, in pieces, with odd and with several names."""
    (root / "folder").mkdir()
    for number in range(300):
        (root / "folder" / f"small{number}").write_bytes(os.urandom(37 * number))
    (root / "large").write_bytes(os.urandom(8 * MIB))
    with (root / "holes").open("wb") as file:
        for number in range(50):
            file.seek(number * 65536)
            file.write(os.urandom(4096))
    (root / "text").write_bytes(b"the same words again " * 100_000)
    (root / "empty").touch()
    os.link(root / "large", root / "folder" / "large too")
    (root / "link").symlink_to("large")
    Path(os.fsdecode(os.fsencode(root) + b"/odd\xff\nname")).write_bytes(b"x" * 5000)
    interleaved(root / "broken", files=8, pieces=60, piece=8192)
    os.sync()


def filefrag(paths: list[Path]) -> dict[Path, int]:
    """Fragments of each file, as `filefrag` counts them; without those that it cannot be asked about."""
    counted = {}
    for path in paths:
        done = subprocess.run(["filefrag", path], capture_output=True, check=False)
        words = done.stdout.rpartition(b": ")[2].split()
        if done.returncode == 0 and words[1:2] and words[1].startswith(b"extent"):
            counted[path] = int(words[0])
    return counted


class Scan:
    """The tables of a scan in `folder`, and what the program said."""

    def __init__(self, target: Path, folder: Path, library: Library, user: int | None = None) -> None:
        words = [find_native(), "disk", "scan", target, "-o", folder]
        who = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        done = subprocess.run(words, capture_output=True, text=True, check=False, **who)
        assert done.returncode == 0, done.stderr
        self.said = done.stderr
        self.connection: duckdb.DuckDBPyConnection = connect(Recording.open(folder), library)

    def query(self, sql: str) -> list[tuple]:
        """Rows of a statement about its tables."""
        return self.connection.execute(sql).fetchall()
