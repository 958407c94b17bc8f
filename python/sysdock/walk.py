"""Opens a folder whose path leads through folders of other users, as `crates/table/src/walk.rs` does.

Another user can put a link in place of any part of a path that lies in a folder of theirs. So a path is
followed one name at a time, and root follows only links of root and of the user who called sudo. What is not
a link is a real folder, and other users can only move folders there that they may write to.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from sysdock.errors import UserError, refusal
from sysdock.sentences import fact

_PASSED = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
# As the kernel (path_resolution(7)).
_MOST_LINKS = 40


def caller() -> int:
    """The user who called sudo; ourselves without."""
    text = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    return int(text) if text.isdecimal() else os.geteuid()


def open_folder(path: Path, make: int | None = None) -> int:
    """A descriptor of the folder for `dir_fd`, which itself cannot be read (O_PATH).

    make: the mode, less the umask, of folders that are missing and are made. UserError: a link of a stranger.
    OSError: it is no folder, or cannot be made.
    """
    handle = _start(path)
    names = list(reversed(path.parts))
    links = 0
    try:
        while names:
            name = names.pop()
            if name == os.sep:
                continue
            try:
                below = _below(handle, name, make)
            except NotADirectoryError:
                links += 1
                target = _target(handle, name, path)
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
                if target is None:
                    below = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=handle)
                else:
                    names += reversed(target.parts)
                    below = _start(target) if target.is_absolute() else os.dup(handle)
            os.close(handle)
            handle = below
    except BaseException as error:
        os.close(handle)
        if isinstance(error, OSError):
            error.filename = str(path)
        raise
    return handle


def reach(descriptor: int) -> Path:
    """A path to this very open folder, whatever has its name by now; for this process only."""
    return Path(f"/proc/self/fd/{descriptor}")


def _start(path: Path) -> int:
    return os.open(os.sep if path.is_absolute() else ".", _PASSED | os.O_DIRECTORY)


def _below(handle: int, name: str, make: int | None) -> int:
    try:
        return os.open(name, _PASSED | os.O_DIRECTORY, dir_fd=handle)
    except FileNotFoundError:
        if make is None:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, make, dir_fd=handle)
    made = os.open(name, _PASSED | os.O_DIRECTORY, dir_fd=handle)
    refuse_mount(handle, made)
    return made


def refuse_mount(above: int, made: int) -> None:
    """Closes a folder that was just made, with an OSError, if something was mounted on it meanwhile."""
    if _mount_of(above) != _mount_of(made):
        os.close(made)
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))


def _mount_of(handle: int) -> str:
    """The line with the id of the mount that an open file is in (proc_pid_fdinfo(5))."""
    lines = Path(f"/proc/self/fdinfo/{handle}").read_text().splitlines()
    return next(line for line in lines if line.startswith("mnt_id:"))


def _target(handle: int, name: str, path: Path) -> Path | None:
    """Where a link leads; None: only the kernel knows, as for an open folder in /proc."""
    link = os.open(name, _PASSED, dir_fd=handle)
    try:
        found = os.fstat(link)
        if not stat.S_ISLNK(found.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if os.geteuid() == 0 and found.st_uid not in (0, caller()):
            raise _strangers_link(path, name, found.st_uid)
        if found.st_dev == os.stat("/proc").st_dev:
            return None
        return Path(os.readlink("", dir_fd=link))
    finally:
        os.close(link)


def _strangers_link(path: Path, name: str, user: int) -> UserError:
    why = fact("paths/strangers_link", name=name, user=str(user))
    return refusal(why, fact("paths/name_where_it_leads"), str(path))
