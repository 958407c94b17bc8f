"""The raw reader of ext2, ext3 and ext4 against e2fsprogs, over images that are made without root."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ext_images
import pytest
from sampling import some

SUM = """
SELECT (SELECT coalesce(sum(length_bytes), 0) FROM extents WHERE physical_bytes IS NOT NULL)
     + (SELECT sum(length_bytes) FROM layout WHERE part <> 'group')
     + (SELECT coalesce(sum(length_bytes), 0) FROM free_extents)
"""

PIECES = """
SELECT physical_bytes AS first, length_bytes AS length FROM extents WHERE physical_bytes IS NOT NULL
UNION ALL SELECT physical_bytes, length_bytes FROM layout WHERE part <> 'group'
UNION ALL SELECT physical_bytes, length_bytes FROM free_extents
"""


@pytest.fixture(params=some(ext_images.VARIANTS, 3), scope="module")
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image of each variant."""
    scratch = tmp_path_factory.mktemp("images")
    path = scratch / f"{request.param}.img"
    ext_images.make(path, request.param, scratch)
    return path


def check_against_debugfs(scan, image: Path) -> None:
    """Every block of every inode, nodes of their maps, and attributes."""
    block = scan.one("SELECT block_bytes FROM file_systems")
    inodes = [number for (number,) in scan.rows("SELECT inode FROM inodes WHERE kind <> 'internal'")]
    stats = ext_images.stats(image, inodes)
    assert set(stats) == set(inodes)
    found = {number: ext_images.Stat() for number in inodes}
    for inode, logical, physical, length, flags in scan.rows(
        "SELECT inode, logical_bytes, physical_bytes, length_bytes, flags FROM extents"
    ):
        if flags == "inline":
            found[inode].is_inline = True
            continue
        for number in range(length // block):
            found[inode].data[logical // block + number] = physical // block + number
            if "unwritten" in flags:
                found[inode].unwritten.add(logical // block + number)
    for inode, physical in scan.rows(
        "SELECT inode, physical_bytes FROM layout WHERE part IN ('extent tree', 'indirect blocks')"
    ):
        if inode in found:
            found[inode].nodes.add(physical // block)
    for number in inodes:
        assert found[number] == stats[number], f"inode {number}"
    # Files may share these; the table names the first.
    attributes = scan.rows(
        "SELECT physical_bytes FROM layout JOIN inodes USING (inode) WHERE part = 'attributes' AND kind <> 'internal'"
    )
    of_debugfs = {stat.attributes for stat in stats.values()} - {0}
    assert sorted(physical // block for (physical,) in attributes) == sorted(of_debugfs)


def test_every_block_has_one_use_and_all_are_told_apart(image: Path, scan: Callable) -> None:
    recorded = scan(image)
    assert recorded.issues() == {}
    ((size, files, method, moment),) = recorded.rows(
        "SELECT size_bytes, files, method, moment FROM file_systems"
    )
    assert (method, moment) == ("raw", "one")
    assert files == recorded.one("SELECT count(*) FROM inodes WHERE kind <> 'internal'")
    assert recorded.one(SUM) == size
    overlaps = f"SELECT count(*) FROM (SELECT first, lag(first + length) OVER (ORDER BY first) AS before FROM ({PIECES})) WHERE first < before"
    assert recorded.one(overlaps) == 0
    assert recorded.rows("SELECT * FROM layout WHERE part = 'unknown'") == []


def test_blocks_of_files_are_those_of_debugfs(image: Path, scan: Callable) -> None:
    check_against_debugfs(scan(image), image)


def test_free_space_is_that_of_dumpe2fs_and_e2freefrag(image: Path, scan: Callable) -> None:
    recorded = scan(image)
    block = recorded.one("SELECT block_bytes FROM file_systems")
    rows = recorded.rows("SELECT physical_bytes, length_bytes FROM free_extents")
    found = [(first // block, (first + length) // block - 1) for first, length in rows]
    assert found == ext_images.free_blocks(image)
    blocks = sum(last - first + 1 for first, last in found)
    if "bigalloc" not in image.name:
        assert (len(found), blocks) == ext_images.free_extents(image)
    assert blocks * block == recorded.one("SELECT free_bytes FROM file_systems")


def test_names_are_those_of_debugfs(image: Path, scan: Callable) -> None:
    recorded = scan(image)
    rows = recorded.rows(
        "SELECT inode, path FROM inodes LEFT JOIN paths USING (path_id) WHERE inodes.kind <> 'internal'"
    )
    expected = ext_images.names(image, [inode for inode, _ in rows])
    expected[2] = {"/"}
    for inode, path in rows:
        plain = {
            name.encode(errors="surrogateescape").decode(errors="backslashreplace")
            for name in expected[inode]
        }
        assert path in plain, f"inode {inode}"


def test_the_image_was_sound(image: Path) -> None:
    # mke2fs -d does not count what it fills in into the quota.
    if "quota" not in image.name:
        ext_images.run("e2fsck", "-fn", image)


def test_inodes_of_a_group_that_is_read_in_parts_are_met_once(scan: Callable, tmp_path: Path) -> None:
    """A window of inodes of 1 KiB has 2,048 of them: here, a group of many, every other of them free."""
    folder, image = tmp_path / "folder", tmp_path / "image"
    folder.mkdir()
    for number in range(5000):
        (folder / f"file{number:04}").write_bytes(b"x")
    ext_images.run(
        "mke2fs", "-q", "-t", "ext4", "-b", "4096", "-I", "1024", "-N", "8192", "-d", folder, image, "64M"
    )
    removed = "\n".join(f"rm /file{number:04}" for number in range(0, 5000, 2))
    ext_images.run("debugfs", "-w", "-f", "-", image, stdin=removed)
    recorded = scan(image)
    assert recorded.issues() == {}
    found = recorded.rows(
        "SELECT path FROM inodes JOIN paths USING (path_id) WHERE path LIKE '/file%' ORDER BY path"
    )
    assert found == [(f"/file{number:04}",) for number in range(1, 5000, 2)]
