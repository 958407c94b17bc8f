"""Brings files to the disk: what sysdock has reported as written survives a power cut.

A file without its sync may be empty after a power cut though its name is there, and a name without that of
its folder may be gone.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from sysdock.walk import open_folder

# Errors of file systems that cannot sync a folder or a special file.
_CANNOT = (errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EROFS)


def sync(path: Path) -> None:
    """Brings a file, or the names in a folder, to the disk; a folder that may not be read stays as it is."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        return
    try:
        sync_open(descriptor, path)
    finally:
        os.close(descriptor)


def sync_open(descriptor: int, path: Path) -> None:
    """The same of an open one; `path` names it in errors."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise OSError(error.errno, error.strerror, str(path)) from None


def replace(new: Path, path: Path) -> None:
    """Gives a file that was written the name `path` in its folder, in one step; one that is there goes."""
    sync(new)
    os.replace(new, path)
    sync(path.parent)


def write(path: Path, content: bytes, mode: int = 0o666, *, lasting: bool = True) -> None:
    """Writes a file in one step, in the place of one that is there; no link is followed.

    lasting: it is to survive a power cut, as all does that is not temporary.
    """
    with replacing(path, mode, lasting=lasting) as file:
        file.write(content)


@contextmanager
def replacing(
    path: Path,
    mode: int = 0o666,
    *,
    lasting: bool = True,
    name: str = "",
    like: os.stat_result | None = None,
) -> Iterator[BinaryIO]:
    """The file to write to, which then takes the place of `path`, by the open folder and its own handle.

    Users who may rename what is in the folder, or the folder itself, cannot have another file changed.
    name: of the file while it is written. like: it gets this mode, and as root this owner.
    """
    new = name or f"{path.name}.new"
    folder = open_folder(path.parent)
    try:
        # A writer that was killed may have left one.
        _remove(new, folder)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(new, flags, mode, dir_fd=folder), "w+b") as file:
            yield file
            file.flush()
            _settle(file.fileno(), like)
            if lasting:
                sync_open(file.fileno(), path)
        os.replace(new, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        if lasting:
            sync_names(folder, path.parent)
    except BaseException as error:
        with suppress(OSError):
            _remove(new, folder)
        if isinstance(error, OSError) and error.filename in (new, "."):
            error.filename = str(path)
        raise
    finally:
        os.close(folder)


def _settle(handle: int, like: os.stat_result | None) -> None:
    if like is not None:
        if os.geteuid() == 0:
            os.fchown(handle, like.st_uid, like.st_gid)
        os.fchmod(handle, stat.S_IMODE(like.st_mode))


def _remove(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def sync_names(folder: int, path: Path) -> None:
    """Brings the names in an open folder to the disk; one that may not be read stays as it is."""
    with suppress(PermissionError):
        handle = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
        try:
            sync_open(handle, path)
        finally:
            os.close(handle)


@contextmanager
def new_file(path: Path, mode: int) -> Iterator[BinaryIO]:
    """A file that gets its name at the end; FileExistsError where there is one of that name by then.

    It is made and named through the open folder, and is on the disk then.
    """
    folder = open_folder(path.parent)
    new = f".{path.name[:100]}.{secrets.token_hex(8)}"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(new, flags, 0o600, dir_fd=folder)
        try:
            with os.fdopen(handle, "w+b") as file:
                yield file
                file.flush()
                os.fchmod(handle, mode)
                sync_open(handle, path)
                _name(handle, folder, new, path)
        finally:
            os.unlink(new, dir_fd=folder)
    finally:
        os.close(folder)


def umask() -> int:
    """The bits that new files of this process do not get."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def write_new(path: Path, text: str) -> None:
    """A new file with this text, as `new_file`, and the mode that files of this process get."""
    with new_file(path, 0o666 & ~umask()) as file:
        file.write(text.encode())


def _name(handle: int, folder: int, new: str, path: Path) -> None:
    try:
        os.link(new, path.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        # A file system without hard links.
        _copy(handle, folder, path)
    try:
        sync_names(folder, path.parent)
    except OSError:
        os.unlink(path.name, dir_fd=folder)
        raise


def _copy(handle: int, folder: int, path: Path) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    out = os.open(path.name, flags, os.fstat(handle).st_mode & 0o777, dir_fd=folder)
    try:
        with os.fdopen(out, "wb") as file, os.fdopen(os.dup(handle), "rb") as written:
            written.seek(0)
            shutil.copyfileobj(written, file)
            file.flush()
            sync_open(out, path)
    except OSError:
        os.unlink(path.name, dir_fd=folder)
        raise


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Makes a folder (mode: less the umask) and what is missing above it, with their names on the disk."""
    os.close(open_or_make(path, mode))


def open_or_make(path: Path, mode: int = 0o777) -> int:
    """The same, and a descriptor of the folder as `walk.open_folder` gives one."""
    missing = [above for above in (path, *path.parents) if not above.exists()]
    descriptor = open_folder(path, mode)
    for made in missing:
        sync(made.parent)
    return descriptor
