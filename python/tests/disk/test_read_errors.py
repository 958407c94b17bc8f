"""Real devices that cannot be read: in single blocks, or from some place on. What is lost is counted, the rest is there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import ext_images
import pytest
from ext_images import run
from loops import loop, mounted, needs_root
from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Recording

MIB = 1 << 20
# btrfs keeps a checksum for each of these bytes of a file.
SUMMED = 4096
FILES = "SELECT path, size_bytes, fragments, allocated_bytes FROM inodes JOIN paths USING (path_id)"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """An ext4 with many fragmented files."""
    needs_root()
    ext_images.needs("mkfs.btrfs")
    path = tmp_path / "image"
    ext_images.make(path, "blocks_1k", tmp_path)
    return path


def forget() -> None:
    """Empties the caches: what was read once is asked for again."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")


@contextmanager
def with_bad_blocks(image: Path, places: list[int], scratch: Path, scan: Callable) -> Iterator[Path]:
    """A device with the content of an image, of which the blocks at some places cannot be read.

    The image is a file on a btrfs, whose content is damaged below: its checksum is wrong, and reading fails.
    """
    disk, point = scratch / "btrfs", scratch / "point"
    with disk.open("wb") as file:
        file.truncate(512 * MIB)
    run("mkfs.btrfs", "-q", disk)
    with loop(disk) as device, mounted(device, point):
        (point / "image").write_bytes(image.read_bytes())
        os.sync()
        extents = scan(point, "--no-measure").rows(
            """SELECT logical_bytes, physical_bytes, length_bytes FROM extents
            JOIN inodes USING (inode) JOIN paths USING (path_id) WHERE path LIKE '%/image'"""
        )
    with disk.open("r+b") as file:
        for place in places:
            [at] = [first + place - begin for begin, first, length in extents if 0 <= place - begin < length]
            file.seek(at)
            old = file.read(1)
            file.seek(at)
            file.write(bytes([old[0] ^ 0xFF]))
    forget()
    with loop(disk) as device, mounted(device, point, "-o", "ro"), loop(point / "image") as inner:
        yield inner


def unreadable(device: Path, place: int) -> bool:
    """Whether the kernel refuses to read there."""
    file = os.open(device, os.O_RDONLY)
    try:
        os.pread(file, 512, place)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


def test_blocks_that_cannot_be_read_are_counted_and_the_rest_is_there(
    image: Path, scan: Callable, tmp_path: Path, library: Library
) -> None:
    sound = scan(image)
    # An inode table that holds files, and a node of the tree of one file, which is in another block for the checksum.
    stat = run("debugfs", "-R", "stat /large0", image)
    node = int(stat.split("(ETB0):")[1].split(",")[0]) * 1024
    [(inode,)] = sound.rows("SELECT inode FROM inodes JOIN paths USING (path_id) WHERE path = '/big'")
    told = run("debugfs", "-R", f"imap <{inode}>", image)
    table = int(told.split("located at block ")[1].split(",")[0]) * 1024
    assert node // SUMMED != table // SUMMED
    with with_bad_blocks(image, [node, table], tmp_path, scan) as device:
        found = scan(device, "--no-measure")
        assert unreadable(device, node)
        assert unreadable(device, table)
    assert "unreadable_block" in found.issues()
    assert "unreadable_block" in found.messages
    assert found.one("SELECT unread_files FROM file_systems") == 1
    before, after = set(sound.rows(FILES)), set(found.rows(FILES))
    lost = before - after
    assert {path for path, *_ in lost} >= {"/big", "/large0"}
    # A block of 4 KiB holds at most 32 inodes of 128 bytes.
    assert len(lost) <= 33 + 1
    assert {path for path, *_ in after - before} == {"/large0"}
    with Session(Recording.open(found.folder), library) as session:
        states = {each.rule: each.status for each in session.diagnose()}
    assert "ok" not in (states["disk/metadata_far_from_data"], states["disk/fragmented_files"])


@pytest.mark.parametrize("left", [2 * MIB, 100 * 1024])
def test_a_device_that_is_gone_from_some_place_on_is_no_silence(
    image: Path, scan: Callable, tmp_path: Path, library: Library, left: int
) -> None:
    whole = scan(image).one("SELECT files FROM file_systems")
    with loop(image) as device:
        os.truncate(image, left)
        forget()
        assert unreadable(device, 48 * MIB)
        found = scan(device)
    assert "unreadable_block" in found.issues()
    assert "unreadable_block" in found.messages
    [(size, files)] = found.rows("SELECT size_bytes, files FROM file_systems")
    assert (size, files < whole) == (64 * MIB, left < MIB)
    with Session(Recording.open(found.folder), library) as session:
        states = {each.rule: each.status for each in session.diagnose()}
    assert states["disk/fragmented_files"] != "ok"


def test_a_device_that_cannot_be_read_at_all_says_so(image: Path, native: Path, tmp_path: Path) -> None:
    with loop(image) as device:
        os.truncate(image, 0)
        forget()
        command = [native, "disk", "scan", device, "-o", tmp_path / "rec"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 2
    assert "Input/output error" in done.stderr
    assert not (tmp_path / "rec").exists()


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_a_mounted_file_system_whose_device_goes_away(
    kind: str, native: Path, scan: Callable, tmp_path: Path
) -> None:
    needs_root()
    disk, point = tmp_path / "disk", tmp_path / "point"
    with disk.open("wb") as file:
        file.truncate(512 * MIB)
    run(f"mkfs.{kind}", "-q", disk)
    with loop(disk) as device:
        with mounted(device, point):
            for number in range(300):
                (point / f"folder{number}").mkdir()
                (point / f"folder{number}" / "file").write_bytes(os.urandom(5000))
        forget()
        with mounted(device, point):
            os.truncate(disk, 200 * 1024)
            forget()
            command = [native, "disk", "scan", point, "-o", tmp_path / "rec"]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert "panicked" not in done.stderr
    assert "Input/output error" in done.stderr or "unreadable_block" in done.stderr
    assert done.returncode in (0, 2)
