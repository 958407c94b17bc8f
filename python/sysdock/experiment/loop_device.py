"""A file system of its own on a loop device, and what the kernel reports of such a device."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sysdock.errors import UserError
from sysdock.experiment.tools import run_tool

_TRIES = 50
_OPTIONS = "noatime"
# Lines of Documentation/block/stat.rst: completed reads, merged reads, sectors of 512 bytes.
_READS, _MERGED, _SECTORS, _SECTOR_BYTES = 0, 1, 2, 512
QUEUE = (
    "read_ahead_kb",
    "max_sectors_kb",
    "max_segments",
    "scheduler",
    "nomerges",
    "rotational",
    "logical_block_size",
)


@dataclass(frozen=True)
class Counters:
    """Read counters of a device."""

    requests: int
    merged_requests: int
    read_bytes: int

    def since(self, before: Counters) -> Counters:
        """The difference to earlier counters."""
        return Counters(
            self.requests - before.requests,
            self.merged_requests - before.merged_requests,
            self.read_bytes - before.read_bytes,
        )


@contextmanager
def loop_device(image: Path, size: int) -> Iterator[Path]:
    """A loop device over a new sparse file; with direct I/O, as nothing is to be cached twice."""
    image.touch(exist_ok=False)
    os.truncate(image, size)
    try:
        yield Path(run_tool("losetup", "--find", "--show", "--direct-io=on", image).strip())
    finally:
        # By the image: an interrupt may come when the device is there already and its name not yet here.
        for device in run_tool("losetup", "--noheadings", "--output=NAME", "--associated", image).split():
            _until_done("losetup", "--detach", device)


@contextmanager
def mounted(device: Path, point: Path) -> Iterator[Path]:
    """Its file system, mounted on a new folder; reading does not change times."""
    point.mkdir()
    try:
        run_tool("mount", "-o", _OPTIONS, device, point)
        yield point
    finally:
        if point.is_mount():
            _until_done("umount", point)
        point.rmdir()


def mount_anew(device: Path, point: Path) -> None:
    """Mounts it again, so that everything is on the device and nothing in memory: a journal keeps its
    newest blocks there.
    """
    _until_done("umount", point)
    run_tool("mount", "-o", _OPTIONS, device, point)


def _until_done(*arguments: str | Path) -> None:
    """Again and again, as another program that probes new devices may hold it for a moment."""
    for left in reversed(range(_TRIES)):
        try:
            run_tool(*arguments)
            return
        except UserError as error:
            if not left:
                hint = f"when no one uses it any more: {' '.join(map(str, arguments))}"
                raise UserError(error.fact, hint, error.place) from None
            time.sleep(0.1)


def counters(device: Path) -> Counters:
    """Its counters now."""
    fields = [int(word) for word in (_sys(device) / "stat").read_text().split()]
    return Counters(fields[_READS], fields[_MERGED], fields[_SECTORS] * _SECTOR_BYTES)


def queue_settings(device: Path) -> dict[str, str]:
    """Settings of its queue, by the kernel's names; those that this kernel has."""
    files = {name: _sys(device) / "queue" / name for name in QUEUE}
    return {name: file.read_text().strip() for name, file in files.items() if file.exists()}


def _sys(device: Path) -> Path:
    return Path("/sys/block") / device.name
