"""A device that goes away in the middle of a scan: calls of the scan fail from some place on, as strace makes them fail.

Whatever is lost, it is said: by an error, or by the recording, of which all that is there is right.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import ext_images
import pytest
from sampling import sampled, some
from stated import stated
from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Recording

sys.path.insert(0, str(Path(__file__).parent))
from loops import MIB, loop, made, needs_root
from scans import Scan

MAKE = {
    "ext4": ["mkfs.ext4", "-q", "-N", "16384"],
    "xfs": ["mkfs.xfs", "-q", "-m", "rmapbt=1"],
    "xfs without a reverse map": ["mkfs.xfs", "-q", "-m", "rmapbt=0"],
    "btrfs": ["mkfs.btrfs", "-q"],
}
FOLDERS, FILES = 20, 120


@dataclass
class Failed:
    """A scan of which calls failed: what it said, and its recording if it left one."""

    status: int
    said: str
    scan: Scan | None

    @property
    def manifest(self) -> dict:
        """recording.json."""
        return stated(self.scan.folder)


@pytest.fixture
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A mounted file system with some thousand files."""
    with made(tmp_path / "image", MAKE[request.param], 400 * MIB) as point:
        for number in range(FOLDERS):
            (point / f"folder{number}").mkdir()
            for each in range(FILES):
                (point / f"folder{number}" / f"file{each}").write_bytes(b"%d" % each * 2000)
        # Written back: every file has its place, now and later.
        subprocess.run(["sync", "-f", point], check=True)
        yield point


@pytest.fixture
def fails(native: Path, tmp_path: Path) -> Callable[..., Failed]:
    """Scans a target with `faults` of strace, of calls on the file `only` if it is given."""
    ext_images.needs("strace")

    def fails_(target: Path, *faults: str, only: Path | None = None, options: Sequence[str] = ()) -> Failed:
        folder = tmp_path / "failed"
        shutil.rmtree(folder, ignore_errors=True)
        calls = ",".join(fault.partition(":")[0] for fault in faults)
        words = ["strace", "-f", "-qq", "-o", tmp_path / "calls", "-e", f"trace={calls}"]
        words += [word for fault in faults for word in ("-e", f"inject={fault}")]
        words += ["-P", only] if only else []
        words += [native, "disk", "scan", target, "--no-measure", "--threads", "1", "-o", folder, *options]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
        scan = Scan(folder, done.stderr) if (folder / "recording.json").exists() else None
        return Failed(done.returncode, done.stderr, scan)

    return fails_


def check(failed: Failed, sound: Scan, library: Library) -> None:
    """That what is lost is said, and that the rest is what a sound device says."""
    assert failed.status in (0, 2), failed.said
    assert "panicked" not in failed.said
    if failed.scan is None:
        assert failed.status == 2
        assert any(os.strerror(number) in failed.said for number in errno.errorcode), failed.said
        return
    ending = {0: "end of input", 2: "input error"}[failed.status]
    assert (failed.manifest["ended_by"], failed.manifest["complete"]) == (ending, failed.status == 0)
    [(counted, unread)] = failed.scan.rows("SELECT files, unread_files FROM file_systems")
    known, found = files_of(sound), files_of(failed.scan)
    assert found.keys() <= known.keys()
    assert {inode: (kind, size) for inode, (kind, size, *_) in found.items()}.items() <= {
        inode: (kind, size) for inode, (kind, size, *_) in known.items()
    }.items()
    # A file whose map could be read in part only has a row, and is counted.
    assert sum(facts[:-1] != known[inode][:-1] for inode, facts in found.items()) <= unread
    # What the file system keeps for itself has a row, and is no file.
    assert counted >= sum(facts[0] != "internal" for facts in found.values())
    if found == known:
        return
    differ = {inode: (facts, found.get(inode)) for inode, facts in known.items() if found.get(inode) != facts}
    assert failed.scan.issues().keys() & {"unreadable_block", "scan_broken_off"}, differ
    with Session(Recording.open(failed.scan.folder), library) as session:
        states = {each.rule: each.status for each in session.diagnose()}
    # The file system itself counts what is free.
    assert {rule for rule, status in states.items() if status == "ok"} <= {"disk/nearly_full"}


def files_of(scan: Scan) -> dict[int, tuple]:
    """What is known of each file, by its number; the last is its path."""
    if not (scan.folder / "inodes").exists():
        return {}
    sql = "SELECT inode, kind, size_bytes, extents, fragments, allocated_bytes, path FROM inodes"
    return {inode: facts for inode, *facts in scan.query(sql)}


@pytest.mark.parametrize("at", sampled([8, 32], [4, 8, 12, 16, 24, 32, 48]))
def test_ext_read_raw(at: int, fails: Callable, scan: Callable, tmp_path: Path, library: Library) -> None:
    needs_root()
    image = tmp_path / "image"
    ext_images.make(image, "blocks_1k", tmp_path)
    with loop(image) as device:
        sound = scan(device, "--no-measure")
        Path("/proc/sys/vm/drop_caches").write_text("3")
        fault = f"pread64,preadv2,fadvise64:error=ENODEV:when={at}+"
        # The dynamic loader reads too: only what is read of the device counts.
        failed = fails(device, fault, only=device)
        check(failed, sound, library)


def test_ext_says_the_same_whatever_is_in_memory(fails: Callable, scan: Callable, tmp_path: Path) -> None:
    needs_root()
    image = tmp_path / "image"
    ext_images.make(image, "blocks_1k", tmp_path)
    # What is in memory stays there as long as anybody has the device open.
    with loop(image) as device, device.open("rb"):
        sound = scan(device, "--no-measure")
        for at in range(1, sampled(5, 13)):
            # One piece is not in memory, and is read behind all others.
            failed = fails(device, f"preadv2:error=EAGAIN:when={at}", only=device)
            assert (failed.status, failed.scan.issues()) == (0, {})
            assert files_of(failed.scan) == files_of(sound), at


@pytest.mark.parametrize("root", ["xfs", "btrfs"], indirect=True)
@pytest.mark.parametrize("error", some(["EIO", "ENODEV"], 2))
def test_the_map_that_the_kernel_tells(
    root: Path, error: str, fails: Callable, scan: Callable, library: Library
) -> None:
    sound = scan(root, "--no-measure")
    for at in (1, 2, 3, 5, 7, 9, 11):
        check(fails(root, f"ioctl:error={error}:when={at}+", only=root), sound, library)


@pytest.mark.parametrize("root", ["xfs"], indirect=True)
def test_files_of_xfs_that_are_not_told_are_counted(
    root: Path, fails: Callable, scan: Callable, library: Library
) -> None:
    sound = scan(root, "--no-measure")
    # One of several ranges of inodes, or all of them but the first.
    for times in ("4", "4+"):
        failed = fails(root, f"ioctl:error=EIO:when={times}", only=root)
        check(failed, sound, library)
        [(files, unread)] = failed.scan.rows("SELECT files, unread_files FROM file_systems")
        # All of them own pieces, which the kernel had told of before.
        assert files == sound.one("SELECT files FROM file_systems")
        assert 0 < unread == files - failed.scan.one("SELECT count(*) FROM inodes")
        assert f"{unread} of {files} files could not be read" in failed.said


@pytest.mark.parametrize("root", ["xfs"], indirect=True)
def test_used_files_are_not_looked_up_where_the_device_is_gone(
    root: Path, fails: Callable, scan: Callable, tmp_path: Path, library: Library
) -> None:
    sound = scan(root, "--no-measure")
    used = tmp_path / "used"
    used.write_bytes(b"1\t0\t1\t0\t5\t%s/folder0/file0\0" % bytes(root))
    failed = fails(root, "ioctl:error=EIO:when=4+", only=root, options=[f"--usage={used}"])
    check(failed, sound, library)
    assert "the used files were not looked up, as the scan ended early" in failed.said
    assert failed.manifest["tables"]["file_usage"]["rows"] == 0


@pytest.mark.parametrize("root", ["btrfs"], indirect=True)
def test_files_of_btrfs_that_were_told_are_kept(
    root: Path, fails: Callable, scan: Callable, library: Library
) -> None:
    # Their content lies in the tree: a hundred of them fill an answer. The thread that reads files then asks more
    # often than the one that begins, and it alone meets the error: strace counts for each thread.
    (root / "more").mkdir()
    for number in range(12_000):
        (root / "more" / f"file{number}").write_bytes(b"x" * 1900)
    subprocess.run(["sync", "-f", root], check=True)
    sound = scan(root, "--no-measure")
    failed = fails(root, "ioctl:error=EIO:when=90+", only=root)
    check(failed, sound, library)
    assert failed.status == 2
    assert 0 < len(files_of(failed.scan)) < len(files_of(sound))
    # The owner of the other data is unknown.
    parts = {part for (part,) in failed.scan.rows("SELECT DISTINCT part FROM layout")}
    assert ("unreferenced" in parts, "metadata" in parts) == (False, True)
    free = "SELECT physical_bytes, length_bytes, device FROM free_extents ORDER BY ALL"
    assert failed.scan.rows(free) == sound.rows(free)


@pytest.mark.parametrize("root", ["xfs"], indirect=True)
@pytest.mark.parametrize("call", some(["getdents64", "newfstatat,fstat"], 2))
def test_folders_whose_names_are_not_told(
    root: Path, call: str, fails: Callable, scan: Callable, library: Library
) -> None:
    sound = scan(root, "--no-measure")
    failed = fails(root, f"{call}:error=EIO", only=root / "folder3")
    check(failed, sound, library)
    # All files of the folder, which is known itself.
    nameless = failed.scan.one("SELECT count(*) FROM inodes WHERE path_id IS NULL")
    assert nameless == FILES
    assert failed.scan.one("SELECT unread_files FROM file_systems") == 1
    assert f"{root}/folder3: Input/output error" in failed.scan.issues()["unreadable_block"]


@pytest.mark.parametrize("root", ["ext4", "xfs without a reverse map"], indirect=True)
@pytest.mark.parametrize("fault", some(["ioctl:error=EIO:when=40+", "getdents64:error=ENODEV:when=9+"], 2))
def test_file_by_file(
    root: Path, fault: str, fails: Callable, native: Path, tmp_path: Path, library: Library
) -> None:
    # All but the file system as a whole, which ext4 tells of in another way.
    inner = root / "inner"
    inner.mkdir()
    for number in range(FOLDERS):
        (root / f"folder{number}").rename(inner / f"folder{number}")
    words = [native, "disk", "scan", inner, "--no-measure", "-o", tmp_path / "sound"]
    subprocess.run(words, check=True, capture_output=True)
    sound = Scan(tmp_path / "sound", "")
    failed = fails(inner, fault)
    check(failed, sound, library)
    [(files, unread)] = failed.scan.rows("SELECT files, unread_files FROM file_systems")
    assert 0 < unread < files
    assert "could not be read, such as" in failed.said
