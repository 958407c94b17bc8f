"""The user who called sudo: recordings are read with this user's rights, never with root's."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from sysdock import walk
from sysdock.errors import UserError


class Caller(NamedTuple):
    """User and main group, by number, and name."""

    uid: int
    gid: int
    name: str


def caller() -> Caller | None:
    """The user who called sudo; `None` if the process has only the rights of the user who started it."""
    uid, gid = walk.caller(), os.environ.get("SUDO_GID", "")
    if uid == os.geteuid() or not gid.isdecimal():
        return None
    return Caller(uid, int(gid), os.environ.get("SUDO_USER", ""))


def as_caller(who: Caller | None) -> dict[str, Any]:
    """Arguments of `subprocess` with which a program runs as the user who called sudo; none without."""
    if who is None:
        return {}
    variables = {"USER": who.name, "LOGNAME": who.name}
    mailbox = Path(os.environ.get("MAIL", ""))
    if mailbox.name == "root":
        # It is a file with the name of its user. sudo may have kept that of the user.
        variables["MAIL"] = str(mailbox.with_name(who.name))
    with suppress(KeyError):
        found = pwd.getpwuid(who.uid)
        variables |= {"HOME": found.pw_dir, "SHELL": found.pw_shell}
    groups = os.getgrouplist(who.name, who.gid)
    return {"user": who.uid, "group": who.gid, "extra_groups": groups, "env": {**os.environ, **variables}}


def become_caller(folder: Path) -> None:
    """Goes on as the user who called sudo, for good, before the recording in `folder` is read.

    What belongs to root alone was written by root, and only root can read it: then nothing changes.
    """
    who = caller()
    if who is None:
        return
    with suppress(OSError):
        found = folder.stat()
        if found.st_uid == 0 and not found.st_mode & 0o022:
            return
    with with_rights_of_caller():
        can_run = os.access(sys.executable, os.X_OK, effective_ids=True)
    if not can_run:
        fact = f"cannot be run by {who.name}, and root does not read what others recorded"
        raise UserError(fact, "install it where all users may read it, such as /opt", sys.executable)
    try:
        os.setgroups(os.getgrouplist(who.name, who.gid))
        os.setresgid(who.gid, who.gid, who.gid)
        os.setresuid(who.uid, who.uid, who.uid)
    except OSError as error:
        raise UserError(f"cannot continue as user {who.uid}: {error.strerror}", place=str(folder)) from None
    os.environ |= {"USER": who.name, "LOGNAME": who.name}
    with suppress(KeyError):
        os.environ["HOME"] = pwd.getpwuid(who.uid).pw_dir


@contextmanager
def with_rights_of_caller() -> Iterator[None]:
    """In its body, files are opened with the rights of the user who called sudo."""
    who = caller()
    if who is None:
        yield
        return
    os.seteuid(who.uid)
    try:
        yield
    finally:
        os.seteuid(0)


def in_process_of_caller(folder: Path, work: Callable[[], None]) -> None:
    """Does `work` on the recording in `folder` in a process that becomes the caller; we stay root.

    A UserError in it is raised here. What it makes goes into files that are open before.
    """
    if caller() is None:
        work()
        return
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        error_text, code = "", 0
        try:
            become_caller(folder)
            work()
        except UserError as error:
            error_text, code = str(error), 2
        except BaseException as error:
            # Whatever it is: it must not go on as a second process of the verb.
            error_text, code = f"{folder}: {error or type(error).__name__}", 2
        os.write(writing, error_text.encode(errors="surrogateescape")[:60_000])
        os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        error_text = pipe.read().decode(errors="surrogateescape")
    _, status = os.waitpid(child, 0)
    if status:
        fact, _, hint = (error_text or f"{folder}: reading it was ended").partition("\n\nhint: ")
        raise UserError(fact, hint or None)
