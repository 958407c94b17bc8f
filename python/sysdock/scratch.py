"""Temporary folders that the parent of a process can remove: their names begin with its number."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from sysdock.recording.signals import held_back


def scratch_folder(within: Path | None = None) -> tempfile.TemporaryDirectory[str]:
    """A new folder of this process, below `within` or in the system's own place.

    A signal that comes while it is made takes effect once the folder is sure to be removed.
    """
    prefix = _prefix(os.getpid())
    with held_back():
        return tempfile.TemporaryDirectory(prefix=prefix, dir=within, ignore_cleanup_errors=True)


def remove_left(pid: int) -> None:
    """Removes the folders of a child that was killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{_prefix(pid)}*"):
        with suppress(FileNotFoundError):
            if path.lstat().st_uid == os.geteuid():
                shutil.rmtree(path, ignore_errors=True)


def _prefix(pid: int) -> str:
    return f"sysdock-{pid}-"
