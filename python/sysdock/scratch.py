"""Folders for what does not fit into memory, which go with the process that made them, however it ends."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path


def scratch_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder whose name says which process made it."""
    return tempfile.TemporaryDirectory(prefix=_prefix(os.getpid()), ignore_cleanup_errors=True)


def remove_left(pid: int) -> None:
    """Removes the folders of a process of ours that was killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{_prefix(pid)}*"):
        if path.lstat().st_uid == os.geteuid():
            shutil.rmtree(path, ignore_errors=True)


def _prefix(pid: int) -> str:
    return f"sysdock-{pid}-"
