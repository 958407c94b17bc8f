"""Folders that only their user may write to: opened once, and reached by their descriptor from then on.

sysdock often runs as root, in folders of others. So a folder that is to be written to must belong to us, and
what is made in it is made through its descriptor: the owner of the folder above may rename it and put a link
in its place, but nothing is written elsewhere. `crates/table/src/folder.rs` does the same.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sysdock import to_disk
from sysdock.errors import UserError, refusal
from sysdock.sentences import fact
from sysdock.walk import caller, open_folder, reach, refuse_mount

OTHERS_WRITE = 0o022
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class OwnFolder:
    """An open folder of ours. `is_new`: this process made it."""

    descriptor: int
    path: Path
    is_new: bool

    @property
    def reach(self) -> Path:
        """A path to this very folder, as `walk.reach`."""
        return reach(self.descriptor)

    def close(self) -> None:
        """Closes the descriptor."""
        os.close(self.descriptor)


def create(path: Path, mode: int = 0o700) -> OwnFolder:
    """Makes a folder, and what is missing above it; an empty one of ours is taken as it is new.

    UserError: it is not empty, no folder, a link, or belongs to another user, or the path leads over a link
    of one. OSError: it cannot be made.
    """
    with _within(path, to_disk.open_or_make) as (above, name):
        is_new = True
        try:
            os.mkdir(name, 0o700, dir_fd=above)
        except FileExistsError:
            is_new = False
        descriptor = _opened(path, above, name)
        if is_new:
            refuse_mount(above, descriptor)
        folder = OwnFolder(descriptor, path, is_new)
        try:
            if not is_new:
                _refuse_strangers(folder.descriptor, path)
                _refuse_full(folder.descriptor, path)
            os.fchmod(folder.descriptor, mode)
            # Until here others may have been able to make files in it.
            _refuse_full(folder.descriptor, path)
            to_disk.sync_names(above, path.parent)
        except BaseException:
            folder.close()
            raise
    return folder


def open_existing(path: Path, *, of_caller: bool = False) -> OwnFolder:
    """Opens a folder, to change what is in it; UserError where others may write to it, or it is not ours.

    of_caller: it may also belong to the user who called sudo. OSError: it is no folder, or a link.
    """
    with _within(path) as (above, name):
        folder = OwnFolder(os.open(name, _FOLDER, dir_fd=above), path, is_new=False)
    try:
        also = caller() if of_caller else -1
        if _refuse_strangers(folder.descriptor, path, also) & OTHERS_WRITE:
            raise refusal(fact("recording/others_write"), fact("recording/take_write_from_others"), str(path))
    except BaseException:
        folder.close()
        raise
    return folder


@contextmanager
def created(path: Path, mode: int = 0o700) -> Iterator[Path]:
    """A new folder for the body, by its descriptor; where that is not finished, what it made is removed."""
    folder = create(path, mode)
    try:
        with _named(folder):
            yield folder.reach
    except BaseException:
        clear(folder.descriptor)
        if folder.is_new:
            _remove(folder)
        raise
    finally:
        folder.close()


@contextmanager
def opened(path: Path, *, of_caller: bool = False) -> Iterator[Path]:
    """An existing folder for the body, by its descriptor; as `open_existing`."""
    folder = open_existing(path, of_caller=of_caller)
    try:
        with _named(folder):
            yield folder.reach
    finally:
        folder.close()


def clear(descriptor: int) -> None:
    """Removes what is in an open folder, and follows no link."""
    for name in os.listdir(descriptor):
        with suppress(OSError):
            if stat.S_ISDIR(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode):
                shutil.rmtree(name, ignore_errors=True, dir_fd=descriptor)
            else:
                os.unlink(name, dir_fd=descriptor)


def refuse_existing(path: Path) -> None:
    """Raises a UserError where `create` would, before anything else is done.

    An empty folder of the user who called sudo passes: the native half makes recordings for this user.
    """
    with suppress(FileNotFoundError), _within(path) as (above, name):
        descriptor = _opened(path, above, name)
        try:
            _refuse_strangers(descriptor, path, caller())
            _refuse_full(descriptor, path)
        finally:
            os.close(descriptor)


def refuse_replaceable(path: Path) -> None:
    """Raises a UserError where somebody else could put another folder in the place of this one of root.

    A folder above belongs to root or to the user who called sudo, and others may write to it only if, as in
    /tmp, they can rename nothing of ours there. Folders that are missing will be ours. Other users than
    root share folders with whom they like, and what they run can do no more than they can.
    """
    if os.geteuid() != 0:
        return
    place = path.resolve()
    for above in filter(Path.exists, place.parents):
        found = above.stat()
        is_shared = found.st_mode & OTHERS_WRITE and not found.st_mode & stat.S_ISVTX
        if found.st_uid not in {0, caller()} or is_shared:
            why = fact("recording/others_may_replace", above=str(above))
            raise refusal(why, fact("recording/name_another_place"), str(path))


def set_mode(path: Path, mode: int) -> None:
    """Sets the mode of a file or folder of ours that is there, and of nothing that a link leads to."""
    with _itself(path) as descriptor:
        os.fchmod(descriptor, mode)


def set_owner(path: Path, user: int, group: int) -> None:
    """Gives a file or folder that is there to somebody, and nothing that a link leads to."""
    with _itself(path) as descriptor:
        os.fchown(descriptor, user, group)


@contextmanager
def _itself(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _within(path: Path, open_above: Callable[[Path], int] = open_folder) -> Iterator[tuple[int, str]]:
    """The open folder that contains a path, and the name there."""
    absolute = path.absolute()
    above = open_above(absolute.parent)
    try:
        yield above, absolute.name or "."
    finally:
        os.close(above)


def _opened(path: Path, above: int, name: str) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=above)
    except OSError as error:
        # A file, or a link, wherever it leads.
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise _exists(path) from None
        error.filename = str(path)
        raise


def _remove(folder: OwnFolder) -> None:
    """Removes an empty folder, if its name still stands for it."""
    with suppress(OSError, UserError), _within(folder.path) as (above, name):
        if os.path.samestat(os.stat(name, dir_fd=above, follow_symlinks=False), os.fstat(folder.descriptor)):
            os.rmdir(name, dir_fd=above)


def _exists(path: Path) -> UserError:
    return refusal(fact("recording/exists"), fact("recording/choose_another_name"), str(path))


def _refuse_strangers(descriptor: int, path: Path, also: int = -1) -> int:
    found = os.fstat(descriptor)
    if found.st_uid not in (os.geteuid(), also):
        why = fact("recording/of_another_user", user=str(found.st_uid))
        raise refusal(why, fact("recording/choose_another_name"), str(path))
    return found.st_mode


def _refuse_full(descriptor: int, path: Path) -> None:
    if os.listdir(descriptor):
        raise _exists(path)


@contextmanager
def _named(folder: OwnFolder) -> Iterator[None]:
    """Errors in the body name the folder as the user does."""

    def named(text: str) -> str:
        return text.replace(str(folder.reach), str(folder.path))

    try:
        yield
    except OSError as error:
        if isinstance(error.filename, str):
            error.filename = named(error.filename)
        raise
    except UserError as error:
        error.fact, error.place = named(error.fact), error.place and named(error.place)
        error.hint = error.hint and named(error.hint)
        raise
