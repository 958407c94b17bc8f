"""Brings files to the disk: what sysdock has reported as written survives a power cut.

A file without its sync may be empty after a power cut though its name is there, and a name without that of
its folder may be gone.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

# Errors of file systems that cannot sync a folder or a special file.
_CANNOT = (errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EROFS)


def sync(path: Path) -> None:
    """Brings a file, or the names in a folder, to the disk; a folder that may not be read stays as it is."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        os.close(descriptor)


def replace(new: Path, path: Path) -> None:
    """Gives a file that was written the name `path` in its folder, in one step; one that is there goes."""
    sync(new)
    os.replace(new, path)
    sync(path.parent)


def write(path: Path, content: bytes, mode: int = 0o666, *, lasting: bool = True) -> None:
    """Writes a file in one step, in the place of one that is there; no link is followed.

    lasting: it is to survive a power cut, as all does that is not temporary.
    """
    new = path.with_name(f"{path.name}.new")
    # A writer that was killed may have left one.
    new.unlink(missing_ok=True)
    try:
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        if lasting:
            replace(new, path)
        else:
            os.replace(new, path)
    except BaseException:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise


def make_folder(path: Path) -> None:
    """Makes a folder and what is missing above it, with their names on the disk."""
    missing = [above for above in (path, *path.parents) if not above.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for made in missing:
        sync(made.parent)
