"""File systems that experiments make: how each is made, and how its files are brought into one piece."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class FileSystem:
    """Commands that make one, and that defragment the files of a folder; `version` prints its version."""

    make: tuple[str, ...]
    version: tuple[str, ...]
    defragment: Callable[[Path], tuple[str | Path, ...]]


FileSystemName = Literal["ext4", "xfs", "btrfs"]
FILE_SYSTEMS = {
    # Its tables are written at once: otherwise the kernel would do that while reads are counted.
    "ext4": FileSystem(
        ("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0"),
        ("e2fsck", "-V"),
        lambda folder: ("e4defrag", folder),
    ),
    # With a reverse map, by which a scan knows whose the nodes of extent trees are.
    "xfs": FileSystem(
        ("mkfs.xfs", "-q", "-m", "rmapbt=1"),
        ("mkfs.xfs", "-V"),
        lambda folder: ("xfs_fsr", *sorted(folder.iterdir())),
    ),
    "btrfs": FileSystem(
        ("mkfs.btrfs", "-q"),
        ("btrfs", "--version"),
        lambda folder: ("btrfs", "filesystem", "defragment", "-r", folder),
    ),
}
