"""The kind `file:`: a file has other contents for a while, as a configuration in /etc.

The file itself is set aside under another name in its folder, and comes back by rename: with its permissions,
owner, times, attributes and hard links, whatever its size. At any moment one of the two is there, whole. The
new one has the permissions and the owner of the old one, or 0644 where there was none; then the undo removes
it.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from sysdock import to_disk
from sysdock.errors import UserError
from sysdock.experiment.state.journal import Entry, Journal
from sysdock.experiment.state.kind import Difference, Kind, cannot

_ABSENT = "no file"


class File(Kind):
    """Files by path."""

    name = "file"

    def problem(self, target: str) -> str | None:
        if not (target.startswith("/") or target.startswith("{")) or target.endswith("/"):
            return f"`{target}` is not the absolute path of a file"
        if target.startswith(("/proc/", "/sys/", "/dev/")):
            return f"`{target}` is the kernel's: use sysctl: or sysfs:"
        return None

    def apply(self, journal: Journal, target: str, value: str) -> None:
        # The target of a link is set aside, not the link.
        path = Path(os.path.realpath(target))
        _fit(path)
        content = value.encode()
        saved, new = _beside(path, journal, "saved"), _beside(path, journal, "new")
        journal.note(
            {
                "kind": "file",
                "target": str(path),
                "saved": str(saved),
                "new": str(new),
                "was": _of_file(path),
                "set": hashlib.sha256(content).hexdigest(),
            }
        )
        try:
            _replace(path, saved, new, content)
        except OSError as error:
            raise cannot(target, str(path.parent), error) from None

    def differs(self, target: str, value: str) -> Difference | None:
        wanted, found = hashlib.sha256(value.encode()).hexdigest(), _digest(Path(target))
        if found == wanted:
            return None
        return Difference(self.name, target, f"content {wanted[:12]}", f"content {found[:12]}")


def _fit(path: Path) -> None:
    """Whether it can be set aside."""
    if not path.parent.is_dir():
        raise UserError("there is no such folder", "make it first, or name another file", str(path.parent))
    if path.exists() and not path.is_file():
        raise UserError("this is not a regular file", "name a file", str(path))
    if path.is_mount():
        raise UserError(
            "this file is a mount of its own, so it cannot be replaced", "unmount it first", str(path)
        )


def _beside(path: Path, journal: Journal, word: str) -> Path:
    """A name that no program takes for a configuration: it begins with a dot and has another end."""
    return path.with_name(f".{path.name[:100]}.sysdock-{word}-{journal.name}-{journal.written.last + 1}")


def _replace(path: Path, saved: Path, new: Path, content: bytes) -> None:
    before = path.stat() if path.exists() else None
    mode = stat.S_IMODE(before.st_mode) if before else 0o644
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        if before:
            os.fchown(handle, before.st_uid, before.st_gid)
            for name in os.listxattr(path):
                os.setxattr(handle, name, os.getxattr(path, name))
        os.fchmod(handle, mode)
    if before:
        try:
            os.link(path, saved)
        except OSError:
            # File systems without hard links; for a moment there is no file.
            os.rename(path, saved)
    to_disk.replace(new, path)


def undo(journal: Journal, entry: Entry) -> list[Difference]:
    """Gives the file that was set aside its name again.

    What somebody wrote there after a restart stays, next to what was set aside, and is named.
    """
    path, saved, new = (Path(entry[key]) for key in ("target", "saved", "new"))
    new.unlink(missing_ok=True)
    is_saved = os.path.lexists(saved)
    if not is_saved and (entry["was"] != _ABSENT or not path.exists()):
        return _left(path, entry)
    is_strange = path.exists() and _digest(path) != entry["set"] and not (is_saved and path.samefile(saved))
    if not journal.is_of_this_boot and is_strange:
        return [Difference("file", str(path), entry["was"], f"{_of_file(path)}, changed after the restart")]
    if not is_saved:
        path.unlink()
    elif path.exists() and path.samefile(saved):
        saved.unlink()
    else:
        os.replace(saved, path)
    to_disk.sync(path.parent)
    return _left(path, entry)


def _left(path: Path, entry: Entry) -> list[Difference]:
    found = _of_file(path)
    return [] if found == entry["was"] else [Difference("file", str(path), entry["was"], found)]


def _of_file(path: Path) -> str:
    """A fingerprint that shows that the file is unchanged."""
    try:
        now = path.stat()
    except FileNotFoundError:
        return _ABSENT
    owner, mode = f"{now.st_uid}:{now.st_gid}", f"mode {stat.S_IMODE(now.st_mode):04o}"
    return f"inode {now.st_ino}, {now.st_size} bytes, {mode}, {owner}, {now.st_mtime_ns}"


def _digest(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return _ABSENT
    except OSError as error:
        return (error.strerror or str(error)).lower()
