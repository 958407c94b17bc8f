"""The raw reader compared with the kernel: fragments by filefrag, mounted devices, journals that were not replayed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import ext_images
import pytest
from ext_images import run
from loops import fill, loop, mounted, needs_root
from sampling import some
from test_ext_variants import PIECES, SUM, check_against_debugfs


def fragments_by_filefrag(root: Path) -> dict[str, int]:
    """Pieces of each file and directory."""
    found = {}
    for folder, _, files in os.walk(os.fsencode(root)):
        paths = [folder] + [os.path.join(folder, name) for name in files]
        plain = [
            path
            for path in paths
            if not os.path.islink(path) and (os.path.isfile(path) or os.path.isdir(path))
        ]
        text = subprocess.run(
            ["filefrag", *plain],
            capture_output=True,
            check=False,
            env={**os.environ, "PATH": ext_images.PATH},
        ).stdout
        for line in text.splitlines():
            match = re.fullmatch(rb"(.*): (\d+) extents? found.*", line)
            assert match, line
            found[os.path.relpath(match[1], os.fsencode(root)).decode(errors="backslashreplace")] = int(
                match[2]
            )
    return found


# Few kernels mount these: blocks larger than a page, quota, names without case. They are tested unmounted.
RARELY_MOUNTED = ("blocks_64k", "quota", "casefold")


@pytest.mark.parametrize(
    "variant", some((name for name in ext_images.VARIANTS if name not in RARELY_MOUNTED), 3)
)
def test_fragments_are_those_of_filefrag(variant: str, scan: Callable, tmp_path: Path) -> None:
    needs_root()
    image = tmp_path / "image"
    size = ext_images.SIZES.get(variant, 128)
    run("mke2fs", "-q", "-F", "-N", "4096", *ext_images.options(variant), image, f"{size}M")
    with loop(image) as device:
        with mounted(device, tmp_path / "point") as point:
            fill(point, max(4096, os.statvfs(point).f_bsize))
            expected = fragments_by_filefrag(point)
            live = scan(device)
            by_mount = scan(point)
        unmounted = scan(device)
    run("e2fsck", "-fn", image)
    ((size, reason),) = live.rows("SELECT size_bytes, reason FROM file_systems")
    assert "disk/through_its_device" in reason
    for recorded, prefix in (
        (live, str(tmp_path / "point")),
        (by_mount, str(tmp_path / "point")),
        (unmounted, ""),
    ):
        assert recorded.issues() == {}
        assert recorded.one("SELECT method FROM file_systems") == "raw"
        paths = dict(recorded.rows("SELECT path, inode FROM inodes JOIN paths USING (path_id)"))
        inodes = dict(recorded.rows("SELECT inode, fragments FROM inodes"))
        # A file with two names has the path of one.
        found = {
            name: inodes.get(paths.get(f"{prefix}/{name}" if name != "." else prefix or "/"))
            for name in expected
        }
        second = {name for name, count in found.items() if count is None}
        assert len(second) == 1
        assert {name: count for name, count in found.items() if name not in second} == {
            name: count for name, count in expected.items() if name not in second
        }
        assert recorded.one(SUM) == size
        assert recorded.rows("SELECT * FROM layout WHERE part = 'unknown'") == []
        overlaps = f"SELECT count(*) FROM (SELECT first, lag(first + length) OVER (ORDER BY first) AS before FROM ({PIECES})) WHERE first < before"
        assert recorded.one(overlaps) == 0
    check_against_debugfs(unmounted, image)


# What a power cut leaves is in the image. What is read from the device comes from the kernel's memory, which also has what no transaction has
# committed yet: whatever is written back just then.


def test_files_in_a_journal_that_was_not_replayed_are_shown(scan: Callable, tmp_path: Path) -> None:
    needs_root()
    image, copy = tmp_path / "image", tmp_path / "copy"
    run("mke2fs", "-q", "-F", "-t", "ext4", image, "128M")
    with loop(image) as device, mounted(device, tmp_path / "point", "-o", "commit=600") as point:
        for number in range(100):
            with open(point / f"file{number}", "wb") as file:
                file.write(b"f" * 5000)
                os.fsync(file.fileno())
        shutil.copy(image, copy)
    assert "needs_recovery" in run("dumpe2fs", "-h", copy)
    recorded = scan(copy)
    assert recorded.issues() == {}
    assert recorded.one("SELECT count(*) FROM paths WHERE path LIKE '/file%'") == 100
    assert "disk/journal_replayed" in recorded.one("SELECT reason FROM file_systems")
    run("e2fsck", "-fy", copy, may_fail=True)
    after = scan(copy)
    query = "SELECT path, size_bytes, fragments, allocated_bytes FROM inodes JOIN paths USING (path_id) ORDER BY path"
    assert recorded.rows(query) == after.rows(query)
    assert recorded.rows("FROM extents ORDER BY ALL") == after.rows("FROM extents ORDER BY ALL")
    assert recorded.rows("FROM free_extents") == after.rows("FROM free_extents")


JOURNALS = {
    "ext3": ("-t", "ext3", "-b", "1024", "-J", "size=4"),
    "ext4": ("-t", "ext4", "-b", "1024", "-J", "size=4"),
    "32bit": ("-t", "ext4", "-b", "1024", "-O", "^64bit", "-J", "size=4"),
    "no_checksums": ("-t", "ext4", "-b", "1024", "-O", "^metadata_csum", "-J", "size=4"),
    "journalled_data": ("-t", "ext4", "-b", "4096", "-J", "size=16"),
}


@pytest.mark.parametrize("variant", some(JOURNALS, 2))
def test_a_replayed_journal_is_what_e2fsck_makes_of_it(variant: str, scan: Callable, tmp_path: Path) -> None:
    """With a log that wrapped around, blocks that were revoked, and data that looks like the journal's own."""
    needs_root()
    image, copy = tmp_path / "image", tmp_path / "copy"
    run("mke2fs", "-q", "-F", "-N", "8192", *JOURNALS[variant], image, "128M")
    data = "journal" if variant == "journalled_data" else "ordered"
    with loop(image) as device, mounted(device, tmp_path / "point", "-o", f"commit=600,data={data}") as point:
        for turn in range(40):
            folder = point / f"folder{turn}"
            folder.mkdir()
            for number in range(60):
                (folder / f"file with a long name, for many blocks {number}").write_bytes(
                    b"\xc0\x3b\x39\x98" * 400
                )
            if turn % 3:
                shutil.rmtree(point / f"folder{turn - 1}")
            with open(point / f"data{turn}", "wb") as file:
                file.write(b"\xc0\x3b\x39\x98" * 3000)
                os.fsync(file.fileno())
        shutil.copy(image, copy)
    recorded = scan(copy)
    assert recorded.issues() == {}
    reason = recorded.one("SELECT reason FROM file_systems")
    assert re.search(r'"disk/journal_replayed","transactions":[1-9]', reason)
    run("e2fsck", "-fy", copy, may_fail=True)
    after = scan(copy)
    query = "SELECT path, size_bytes, fragments, allocated_bytes FROM inodes JOIN paths USING (path_id) ORDER BY path"
    assert recorded.rows(query) == after.rows(query)
    for table in ("extents", "free_extents", "layout"):
        assert recorded.rows(f"FROM {table} ORDER BY ALL") == after.rows(f"FROM {table} ORDER BY ALL")


def test_fast_commits_that_are_not_replayed_are_said(scan: Callable, tmp_path: Path) -> None:
    needs_root()
    image, copy = tmp_path / "image", tmp_path / "copy"
    run("mke2fs", "-q", "-F", "-t", "ext4", "-O", "fast_commit", image, "128M")
    with loop(image) as device, mounted(device, tmp_path / "point", "-o", "commit=600") as point:
        for number in range(20):
            with open(point / f"file{number}", "wb") as file:
                file.write(b"f" * 5000)
                os.fsync(file.fileno())
        shutil.copy(image, copy)
    recorded = scan(copy)
    shown = recorded.one("SELECT count(*) FROM paths WHERE path LIKE '/file%'")
    assert shown == 20 or "not_replayed" in recorded.issues()


def test_an_image_below_a_mount_is_refused(native: Path, tmp_path: Path) -> None:
    needs_root()
    image = tmp_path / "image"
    run("mke2fs", "-q", "-F", "-t", "ext4", image, "16M")
    with loop(image) as device, mounted(device, tmp_path / "point"):
        answer = run(native, "disk", "scan", image, "-o", tmp_path / "rec", may_fail=True)
    assert f"the image of {device}, which is mounted" in answer
    assert "hint: scan the mount point" in answer
    assert not (tmp_path / "rec").exists()
