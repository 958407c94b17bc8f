"""Temporary folders that the parent of a process can remove: their names begin with its number."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path


def scratch_folder() -> tempfile.TemporaryDirectory[str]:
    """A new folder of this process."""
    return tempfile.TemporaryDirectory(prefix=_prefix(os.getpid()), ignore_cleanup_errors=True)


def remove_left(pid: int) -> None:
    """Removes the folders of a child that was killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{_prefix(pid)}*"):
        with suppress(FileNotFoundError):
            if path.lstat().st_uid == os.geteuid():
                shutil.rmtree(path, ignore_errors=True)


def _prefix(pid: int) -> str:
    return f"sysdock-{pid}-"
