"""A folder as the first file system of a kernel: cpio, format `newc`.

See Documentation/driver-api/early-userspace/buffer-format.rst of Linux.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_CONSOLE = ("dev/console", stat.S_IFCHR | 0o600, (5, 1))


def pack(folders: list[Path], out: IO[bytes]) -> None:
    """Writes what is in the folders, as if root owned it. A later file replaces one before."""
    number = 0
    for folder in folders:
        for path in _below(folder):
            number += 1
            content, mode = _read(path)
            _entry(out, number, os.fspath(path.relative_to(folder)), mode, content)
    name, mode, device = _CONSOLE
    _entry(out, number + 1, "dev", stat.S_IFDIR | 0o755, b"")
    _entry(out, number + 2, name, mode, b"", device)
    _entry(out, 0, "TRAILER!!!", 0, b"")


def _below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _below(path)


def _read(path: Path) -> tuple[bytes, int]:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return os.fsencode(os.readlink(path)), mode
    # Pipes, sockets and devices of a tree are of no use in the guest: they become empty files.
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        return b"", stat.S_IFREG | stat.S_IMODE(mode)
    return (path.read_bytes() if stat.S_ISREG(mode) else b""), mode


def _entry(
    out: IO[bytes], number: int, name: str, mode: int, content: bytes, device: tuple[int, int] = (0, 0)
) -> None:
    encoded = os.fsencode(name) + b"\0"
    links = 2 if stat.S_ISDIR(mode) else 1
    fields = (number, mode, 0, 0, links, 0, len(content), 0, 0, *device, len(encoded), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
    out.write(head + bytes(-len(head) % 4))
    out.write(content + bytes(-len(content) % 4))
