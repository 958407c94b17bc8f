"""File systems that are really mounted, on loop devices: for root only."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import ext_images
import pytest
from ext_images import run
from waiting import wait_for

MIB = 1 << 20
FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 1, 2
libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]


def needs_root() -> None:
    """Skip where no file system can be mounted."""
    if os.getuid() != 0:
        pytest.skip("needs root, to mount on a loop device")
    ext_images.needs("losetup", "mount", "filefrag")


@contextmanager
def loop(image: Path) -> Iterator[Path]:
    """A loop device over an image."""
    device = Path(run("losetup", "--find", "--show", image).strip())
    try:
        yield device
    finally:
        command = ("losetup", "--detach", device)
        wait_for(lambda: "busy" not in run(*command, may_fail=True), f"{device} to be detached", every_s=0.1)


@contextmanager
def mounted(device: Path, point: Path, *options: str) -> Iterator[Path]:
    """A file system on its mount point; skipped where this kernel does not mount it."""
    point.mkdir(exist_ok=True)
    answer = run("mount", *options, device, point, may_fail=True)
    if not os.path.ismount(point):
        pytest.skip(f"this kernel does not mount it: {answer.strip()}")
    try:
        yield point
    finally:
        run("umount", point)


@contextmanager
def made(image: Path, make: list[str], size: int, *options: str) -> Iterator[Path]:
    """Makes a file system with the command `make IMAGE`, and mounts it where everybody may go; gives where."""
    needs_root()
    ext_images.needs(make[0])
    image.touch()
    os.truncate(image, size)
    run(*make, image)
    with tempfile.TemporaryDirectory(prefix="sysdock-mount-") as folder, loop(image) as device:
        Path(folder).chmod(0o755)
        with mounted(
            device, Path(folder) / "point", *(["-o", ",".join(options)] if options else [])
        ) as point:
            yield point


@contextmanager
def btrfs_of(folder: Path, devices: int, size: int, *make: str) -> Iterator[dict[str, Path]]:
    """A btrfs over loop devices, not mounted: by the name of each its image."""
    needs_root()
    ext_images.needs("mkfs.btrfs", "btrfs")
    with ExitStack() as stack:
        images = {}
        for number in range(1, devices + 1):
            image = folder / f"image{number}"
            image.touch()
            os.truncate(image, size)
            images[str(stack.enter_context(loop(image)))] = image
        run("mkfs.btrfs", "-q", *make, *images)
        # The kernel has to know all of them before one is mounted.
        run("btrfs", "device", "scan", *images)
        try:
            yield images
        finally:
            for device in images:
                run("btrfs", "device", "scan", "--forget", device, may_fail=True)


def allocate(path: Path, begin: int, length: int, mode: int = 0) -> None:
    """fallocate(2) where the file system has it, else a write."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if libc.fallocate(descriptor, mode, begin, length) != 0 and mode == 0:
            os.pwrite(descriptor, b"w" * length, begin)
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def fill(root: Path, unit: int) -> None:
    """Files in many pieces, with holes, unwritten parts, attributes; many in one directory; some deleted."""
    ext_images.fill_folder(root)
    for turn in range(40):
        for number in range(8):
            allocate(root / f"interleaved{number}", turn * unit, unit)
    for turn in range(30):
        allocate(root / "with holes", turn * 3 * unit, unit)
        allocate(root / "between", turn * unit, unit)
    allocate(root / "kept", 0, 20 * unit, FALLOC_FL_KEEP_SIZE)
    allocate(root / "punched", 0, 60 * unit)
    for turn in range(0, 60, 4):
        allocate(root / "punched", turn * unit, unit, FALLOC_FL_PUNCH_HOLE)
    for number in range(0, 400, 3):
        (root / "many" / f"a rather long name, so that the directory has many blocks: {number:04}").unlink()
    for number in range(20):
        path = root / f"attributes{number}"
        path.touch()
        for name in range(3):
            os.setxattr(path, f"user.name{name}", (b"v" if number < 10 else b"%d" % number) * 150)
    large = root / "large attribute"
    large.touch()
    # Without ea_inode there is no room.
    with suppress(OSError):
        os.setxattr(large, "user.large", b"v" * 9000)
    shutil.copytree(root / "deep", root / "copy")
    os.sync()


def interleaved(folder: Path, files: int, pieces: int, piece: int) -> None:
    """Files that got a piece each by turns, with holes: in as many fragments on any file system."""
    folder.mkdir()
    opened = [os.open(folder / f"part{number}", os.O_RDWR | os.O_CREAT) for number in range(files)]
    for number in range(pieces):
        for file in opened:
            os.posix_fallocate(file, 2 * number * piece, piece)
    for file in opened:
        os.close(file)


def fill_with_all_kinds(root: Path) -> None:
    """Files of many kinds: small and large, with holes, fragmented, with odd and with several names."""
    (root / "folder").mkdir()
    for number in range(300):
        (root / "folder" / f"small{number}").write_bytes(os.urandom(37 * number))
    (root / "large").write_bytes(os.urandom(8 * MIB))
    with (root / "holes").open("wb") as file:
        for number in range(50):
            file.seek(number * 65536)
            file.write(os.urandom(4096))
    (root / "text").write_bytes(b"the same words again " * 100_000)
    (root / "empty").touch()
    os.link(root / "large", root / "folder" / "large too")
    (root / "link").symlink_to("large")
    Path(os.fsdecode(os.fsencode(root) + b"/odd\xff\nname")).write_bytes(b"x" * 5000)
    interleaved(root / "broken", files=8, pieces=60, piece=8192)
    os.sync()


def filefrag(paths: list[Path]) -> dict[Path, int]:
    """Fragments of each file, as `filefrag` counts them; without those that it cannot be asked about."""
    counted = {}
    for path in paths:
        done = subprocess.run(["filefrag", path], capture_output=True, check=False)
        words = done.stdout.rpartition(b": ")[2].split()
        if done.returncode == 0 and words[1:2] and words[1].startswith(b"extent"):
            counted[path] = int(words[0])
    return counted
