"""File systems of an experiment: a sparse image, a loop device with direct I/O, a file system, a mount."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from sysdock.errors import UserError
from sysdock.experiment.file_system_kinds import FILE_SYSTEMS
from sysdock.experiment.state.journal import Entry, Journal
from sysdock.experiment.state.kind import Difference
from sysdock.experiment.state.mounts import image_of, mount_anew
from sysdock.experiment.tools import find_tool, run_tool
from sysdock.recording.signals import held_back

_TRIES = 100
_PAUSE_S = 0.05


def make_device(journal: Journal, image: Path, size_bytes: int) -> Path:
    """A loop device over a new sparse image; with direct I/O, as nothing is to be cached twice."""
    _has_room(image.parent, size_bytes)
    if os.path.lexists(image):
        raise UserError(
            "it is there already", "name another folder for the experiment, or remove it", str(image)
        )
    journal.note({"kind": "device", "target": str(image.resolve())})
    with held_back():
        with open(image, "xb") as file:
            os.truncate(file.fileno(), size_bytes)
        arguments = ("losetup", "--find", "--show", "--direct-io=on", image)
        return Path(run_tool(*arguments, pass_fds=(journal.handle,)).strip())


def make_file_system(journal: Journal, device: Path, kind: str, arguments: Sequence[str]) -> None:
    """Writes a file system; `arguments` are options of its mkfs."""
    known = FILE_SYSTEMS.get(kind)
    command = known.make if known else (f"mkfs.{kind}", *(("-q",) if kind.startswith("ext") else ()))
    try:
        run_tool(*command, *arguments, device, pass_fds=(journal.handle,))
    except UserError as error:
        raise UserError(
            error.fact, f"it was: {' '.join((*command, *arguments))} {device}", error.place
        ) from None


def mount(journal: Journal, device: Path, point: Path, options: str) -> None:
    """Mounts it on a folder that is made for it."""
    journal.note({"kind": "mount", "target": str(point)})
    with held_back():
        point.mkdir()
        mount_anew(journal, str(device), point, options)


def fit(kind: str) -> None:
    """Whether this machine can make and mount such a file system, for us."""
    if os.geteuid() != 0:
        raise UserError(f"making a file system {kind} needs root", "run the experiment as root", kind)
    known = FILE_SYSTEMS.get(kind)
    tool = known.make[0] if known else f"mkfs.{kind}"
    for name in ("losetup", "mount", "umount", tool):
        if find_tool(name) is None:
            raise UserError(f"{name} is not installed", f"install the package that has {name}", kind)


def _has_room(folder: Path, size_bytes: int) -> None:
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    if free < size_bytes:
        fact = f"a device of {size_bytes:,} bytes is needed, but only {free:,} bytes are free"
        raise UserError(fact, "choose a folder on a larger disk with -o", str(folder))


def devices_over(image: str) -> list[Path]:
    """Loop devices whose file this is."""
    names = [path.name for path in Path("/sys/block").glob("loop*")]
    return [Path("/dev") / name for name in names if image_of(name) == image]


def undo_device(journal: Journal, entry: Entry) -> list[Difference]:
    """Detaches what is over the image, by its name, and removes the image."""
    image = entry["target"]
    for left in reversed(range(_TRIES)):
        found = devices_over(image)
        if not found:
            break
        for device in found:
            # A device in use is detached by its last user, so that one may go between two looks.
            with suppress(UserError):
                run_tool("losetup", "--detach", device, pass_fds=(journal.handle,))
        if not left:
            users = ", ".join(map(str, found))
            return [Difference("device", image, "no loop device", f"{users} is in use")]
        if devices_over(image):
            time.sleep(_PAUSE_S)
    Path(image).unlink(missing_ok=True)
    return []
