"""File systems in memory that are soon full: writes are really cut short, and names really find no room."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PAGE = 4096


@contextmanager
def small_disk(point: Path, size: int, files: int = 10_000) -> Iterator[Path]:
    """A file system of `size` bytes for at most so many files and folders; skipped where none can be mounted."""
    point.mkdir(exist_ok=True)
    # The root is one of its files.
    options = f"size={size},nr_inodes={files + 1}"
    words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", point]
    made = subprocess.run(words, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    try:
        yield point
    finally:
        subprocess.run(["umount", "-l", point], check=True)


def resize(point: Path, limit: str) -> None:
    """Gives it another `size=BYTES` or `nr_inodes=NUMBER`."""
    subprocess.run(["mount", "-o", f"remount,{limit}", point], check=True)
