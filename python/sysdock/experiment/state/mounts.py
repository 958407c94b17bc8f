"""The kind `mount.options:`, and what mounts are made and undone with.

`mount.options:/srv` or, of a file system of the experiment, `mount.options:NAME`: options as for mount -o.
They are added to those in force, in the place of those that they contradict (`noatime` for `relatime`,
`data=journal` for `data=ordered`). A file system of the experiment is unmounted and mounted with them, so
that options work that a remount cannot change, and nothing of it stays in memory; any other is remounted.
"""

from __future__ import annotations

import errno
import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sysdock.errors import UserError
from sysdock.experiment.state import processes
from sysdock.experiment.state.journal import Entry, Journal
from sysdock.experiment.state.kind import Difference, Kind
from sysdock.experiment.tools import run_tool

_TRIES = 50
# How often to look whether a device is free.
_TRIES_FREE = 600
_PAUSE_S = 0.1
_TIMES = {"relatime", "noatime", "strictatime", "atime"}
# Options that state a default; no file system shows them.
_DEFAULTS = {
    "defaults",
    "exec",
    "suid",
    "dev",
    "async",
    "diratime",
    "atime",
    "strictatime",
    "barrier",
    "delalloc",
}
# Options that ext4 shows under another name.
_OTHERWISE = {"barrier=0": "nobarrier", "barrier=1": "barrier"}


@dataclass(frozen=True)
class Mount:
    """A line of /proc/self/mounts."""

    device: str
    point: str
    kind: str
    options: str


def mounts() -> list[Mount]:
    """All, in their order."""
    lines = Path("/proc/self/mounts").read_text(errors="surrogateescape").splitlines()
    return [Mount(*(_plain(word) for word in line.split()[:4])) for line in lines]


def mounted_at(point: str) -> Mount | None:
    """The visible mount: the last one that was mounted."""
    return next((mount for mount in reversed(mounts()) if mount.point == point), None)


def _plain(word: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), word)


def image_of(device: str) -> str | None:
    """The file of a loop device, removed or not; None where it has none."""
    try:
        text = (Path("/sys/block") / Path(device).name / "loop" / "backing_file").read_text()
    except OSError:
        return None
    return text.rstrip("\n").removesuffix(" (deleted)")


def merged(options: str, more: str) -> str:
    """Options with others added, in the place of those that they contradict."""
    added = [word for word in more.split(",") if word]
    kept = [
        word for word in options.split(",") if word and not any(_contradict(word, other) for other in added)
    ]
    return ",".join([*kept, *added])


def _contradict(one: str, other: str) -> bool:
    if one == other or {one, other} <= _TIMES or {one, other} == {"ro", "rw"}:
        return True
    name, other_name = (_OTHERWISE.get(word, word).partition("=")[0] for word in (one, other))
    return name in (other_name, f"no{other_name}") or other_name == f"no{name}"


class MountOptions(Kind):
    """Options of mounts; `made` has mount points and first options of the experiment's own, by name."""

    name = "mount.options"

    def __init__(self, made: dict[str, tuple[Path, str]]) -> None:
        self._made = made

    def problem(self, target: str) -> str | None:
        if target.startswith("/") or re.fullmatch(r"\{?[\w.-]+\}?", target):
            return None
        return f"`{target}` is neither a mount point nor the name of a file system of the experiment"

    def apply(self, journal: Journal, target: str, value: str) -> None:
        _of_form(value)
        now = self._mount(target)
        own = self._own(now.point)
        undo = {"kind": "mount.options", "target": now.point, "device": now.device, "type": now.kind}
        if own is None:
            journal.note({**undo, "was": now.options, "all": ",".join(shown(now)), "made": "no"})
            remount(journal, now, merged(now.options, value), now.options)
        else:
            image = image_of(now.device) or ""
            journal.note({**undo, "was": now.options, "made": "yes", "image": image})
            mount_anew(journal, now.device, Path(now.point), merged(own, value))
        if difference := self.differs(target, value):
            fact = f"`{value}` was requested, but {now.point} is mounted with {difference.found}"
            raise UserError(fact, f"{now.kind} does not take these options here", target)

    def differs(self, target: str, value: str) -> Difference | None:
        now = self._mount(target)
        missing = [word for word in value.split(",") if not _holds(word, shown(now))]
        return Difference(self.name, target, value, now.options) if missing else None

    def _mount(self, target: str) -> Mount:
        point = str(self._made[target][0]) if target in self._made else os.path.realpath(target)
        found = mounted_at(point)
        if found is None:
            fact = "nothing is mounted there"
            raise UserError(fact, "name a mount point, or a file system of the experiment", target)
        return found

    def _own(self, point: str) -> str | None:
        return next((base for place, base in self._made.values() if str(place) == point), None)


def _of_form(value: str) -> None:
    if not re.fullmatch(r"[\w.:=/@%+-]+(,[\w.:=/@%+-]+)*", value):
        raise UserError(
            f"`{value}` are no mount options",
            "write them as for mount -o: noatime,commit=30",
            "mount.options",
        )


def shown(mount: Mount) -> set[str]:
    """Options in force. ext4 states all of them, /proc/mounts only those that differ from what it was made
    with.
    """
    words = set(mount.options.split(","))
    with suppress(OSError):
        words |= set(Path(f"/proc/fs/ext4/{Path(mount.device).name}/options").read_text().split())
    return words


def _holds(word: str, now: set[str]) -> bool:
    """Whether an option that was asked is in force; the words of mount(8) that say a default, by what is
    absent.
    """
    word = _OTHERWISE.get(word, word)
    if word in now:
        return True
    if word in ("strictatime", "atime"):
        return not now & {"noatime", "relatime"}
    if word in _DEFAULTS:
        return f"no{word}" not in now
    return word in ("nodiscard", "norelatime") and word[2:] not in now


def remount(journal: Journal, now: Mount, options: str, before: str) -> None:
    """Changes options of a mount that stays. Without the device, mount(8) would add what fstab says."""
    # An option stays in force until it is changed.
    given = set(options.split(","))
    opposite = [_opposite(word) for word in before.split(",") if word not in given]
    extra = [word for word in opposite if word and not any(_contradict(word, other) for other in given)]
    words = ",".join(["remount", *sorted(given), *extra])
    _mount_tool(journal, "mount", "-o", words, now.device, now.point)


def _opposite(word: str) -> str:
    if "=" in word or word in {*_TIMES, "ro", "rw"}:
        return ""
    return word[2:] if word.startswith("no") else f"no{word}"


def mount_anew(journal: Journal, device: str, point: Path, options: str) -> None:
    """Unmounts and mounts, so that all is on the device and nothing of it in memory."""
    while mounted_at(str(point)) is not None:
        unmount(journal, point)
    _wait_until_free(device)
    _mount_tool(journal, "mount", "-o", options or "defaults", device, point)


def unmount(journal: Journal, point: Path) -> None:
    """Waits a while, as another program may hold one for a moment; the error names who uses it."""
    for left in reversed(range(_TRIES)):
        try:
            run_tool("umount", point, pass_fds=(journal.handle,))
            return
        except UserError as error:
            if mounted_at(str(point)) is None:
                return
            if not left:
                users = ", ".join(processes.users_below(point)) or "no one that /proc tells"
                fact = f"it cannot be unmounted: {error.fact}"
                raise UserError(fact, f"it is used by: {users}", str(point)) from None
            time.sleep(_PAUSE_S)


def _wait_until_free(device: str) -> None:
    """A process with mounts of its own keeps the file system in use, and the kernel would mount it with the
    options that it has (mount_namespaces(7)).
    """
    for left in reversed(range(_TRIES_FREE)):
        try:
            # With O_EXCL, a device that is in use cannot be opened (open(2)).
            os.close(os.open(device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
            return
        except OSError as error:
            if error.errno != errno.EBUSY:
                return
            if not left:
                users = ", ".join(processes.with_mount(device)) or "no one that /proc tells"
                fact = "it was unmounted, but is still in use"
                raise UserError(fact, f"it is mounted for: {users}", device) from None
            time.sleep(_PAUSE_S)


def _mount_tool(journal: Journal, *words: str | Path) -> None:
    try:
        run_tool(*words, pass_fds=(journal.handle,))
    except UserError as error:
        if os.geteuid() != 0:
            raise UserError("mounting needs root", "run the experiment as root", str(words[-1])) from None
        raise UserError(f"{error.fact}", f"it was: {' '.join(map(str, words))}", str(words[-1])) from None


def undo_options(journal: Journal, entry: Entry) -> list[Difference]:
    """Brings the options back that were in force. After a restart, mounts are new."""
    point = Path(entry["target"])
    now = mounted_at(str(point))
    if not journal.is_of_this_boot or (
        entry["device"].startswith("/") and not os.path.exists(entry["device"])
    ):
        return []
    if entry["made"] == "yes":
        return _undo_own(journal, entry, point, now)
    if now is None:
        return [Difference("mount.options", str(point), entry["was"], "not mounted")]
    if now.options != entry["was"]:
        # `commit=30` is removed only by the `commit=5` that was in force without being shown.
        added = {word.partition("=")[0] for word in now.options.split(",") if "=" in word}
        unseen = [word for word in entry["all"].split(",") if "=" in word and word.partition("=")[0] in added]
        remount(journal, now, merged(entry["was"], ",".join(unseen)), now.options)
    return _left(entry, point)


def _undo_own(journal: Journal, entry: Entry, point: Path, now: Mount | None) -> list[Difference]:
    """A file system of the experiment that was unmounted when the experiment broke off is mounted if its
    device still exists.
    """
    if now is None and image_of(entry["device"]) != entry["image"]:
        # An undo that was broken off had come further.
        return []
    if now is None or now.options != entry["was"]:
        # Options that /proc/mounts shows can be used to mount again.
        mount_anew(journal, entry["device"], point, entry["was"])
    return _left(entry, point)


def _left(entry: Entry, point: Path) -> list[Difference]:
    now = mounted_at(str(point))
    found = now.options if now else "not mounted"
    return [] if found == entry["was"] else [Difference("mount.options", str(point), entry["was"], found)]


def undo_mount(journal: Journal, entry: Entry) -> list[Difference]:
    """Unmounts what is mounted there, and removes the folder that was made for it."""
    point = Path(entry["target"])
    while mounted_at(str(point)) is not None:
        unmount(journal, point)
    with suppress(FileNotFoundError):
        point.rmdir()
    return []
