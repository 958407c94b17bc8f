"""Scans of mounted file systems against filefrag, e2freefrag and the size of the device."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from loops import MIB, filefrag, fill_with_all_kinds, made
from scans import Scan, scanned

KINDS = {
    "ext4": (["mkfs.ext4", "-q"], 256 * MIB, ""),
    "ext3": (["mkfs.ext3", "-q"], 256 * MIB, ""),
    "xfs with owners": (["mkfs.xfs", "-q", "-m", "rmapbt=1"], 512 * MIB, ""),
    "xfs without": (["mkfs.xfs", "-q", "-m", "rmapbt=0"], 512 * MIB, ""),
    "btrfs": (["mkfs.btrfs", "-q"], 512 * MIB, ""),
    "btrfs with zstd": (["mkfs.btrfs", "-q"], 512 * MIB, "compress-force=zstd"),
}
# Those whose kernel names the owner of every block: nothing is left over.
WHOLE = ("xfs with owners", "btrfs", "btrfs with zstd")


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of file system."""
    return request.param


@pytest.fixture(scope="module")
def root(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One with files in it, mounted."""
    make, size, options = KINDS[kind]
    with made(tmp_path_factory.mktemp("disk") / "image", make, size, *filter(None, [options])) as point:
        fill_with_all_kinds(point)
        yield point


@pytest.fixture(scope="module")
def found(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Scan:
    """Its scan, by root."""
    return scanned(root, tmp_path_factory.mktemp("scan") / "rec")


def test_fragments_are_those_of_filefrag(root: Path, found: Scan) -> None:
    ours = dict(found.query("SELECT path, fragments FROM inodes WHERE kind IN ('file', 'directory')"))
    theirs = filefrag([path for path in (root, *root.rglob("*")) if not path.is_symlink()])
    named = {
        str(path): count
        for path, count in theirs.items()
        if "\\x" not in repr(str(path)) and str(path).isprintable()
    }
    # A file with several names has one row, under one of them.
    several = {str(root / "large"), str(root / "folder" / "large too")}
    assert len(named) > 300
    assert {path: ours.get(path) for path in named if path not in several} == {
        path: count for path, count in named.items() if path not in several
    }
    assert len(several & set(ours)) == 1


def test_odd_names_stay_visible(root: Path, found: Scan) -> None:
    [(path, size)] = found.query("SELECT path, size_bytes FROM inodes WHERE path LIKE '%odd%'")
    assert (path, size) == (f"{root}/odd\\xff\nname", 5000)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "xfs without"], indirect=True)
def test_all_that_is_told_is_the_device(kind: str, root: Path, found: Scan) -> None:
    [(size, method)] = found.query("SELECT size_bytes, method FROM file_systems")
    pieces = found.query(
        """SELECT DISTINCT device, physical_bytes, coalesce(stored_bytes, length_bytes) FROM extents WHERE physical_bytes IS NOT NULL
        UNION ALL SELECT device, physical_bytes, length_bytes FROM free_extents
        UNION ALL SELECT device, physical_bytes, length_bytes FROM layout WHERE part <> 'group'"""
    )
    pieces.sort()
    ends = [begin + length for _, begin, length in pieces]
    assert all(end <= pieces[number + 1][1] for number, end in enumerate(ends[:-1]))
    assert ends[-1] <= size + (64 << 20)
    if kind in WHOLE:
        assert method in ("fsmap", "tree")
        assert sum(length for _, _, length in pieces) == size


@pytest.mark.parametrize("kind", ["ext4", "ext3"], indirect=True)
def test_free_space_is_that_of_e2freefrag(kind: str, root: Path, found: Scan, tmp_path: Path) -> None:
    """Run on a copy: for a mounted file system e2freefrag asks the kernel, which counts blocks preallocated for open files as used."""
    source = subprocess.run(
        ["findmnt", "-no", "SOURCE", root], capture_output=True, text=True, check=True
    ).stdout.strip()
    copy = tmp_path / "copy"
    shutil.copyfile(source, copy)
    said = subprocess.run(["e2freefrag", copy], capture_output=True, text=True, check=True).stdout
    [(pieces, blocks)] = found.query("SELECT count(*), sum(length_bytes) FROM free_extents")
    assert pieces == int(re.search(r"Num. free extent: (\d+)", said)[1])
    block = int(re.search(r"Blocksize: (\d+)", said)[1])
    # "Free blocks" is the super block's, which is not kept up to date.
    assert blocks == block * sum(int(row) for row in re.findall(r":\s+\d+\s+(\d+)\s+[\d.]+%", said))


def test_who_may_not_read_is_told_how_much_is_missing(root: Path) -> None:
    (root / "folder").chmod(0o700)
    with tempfile.TemporaryDirectory(prefix="sysdock-scan-") as folder:
        Path(folder).chmod(0o777)
        try:
            found = scanned(root, Path(folder) / "rec", user=65534)
        finally:
            (root / "folder").chmod(0o755)
        [(method, unread)] = found.query("SELECT method, unread_files FROM file_systems")
    assert method == "fiemap"
    assert unread >= 1
    assert f"{unread} of " in found.messages


@pytest.mark.parametrize("kind", ["btrfs with zstd"], indirect=True)
def test_compressed_extents_say_what_they_take(kind: str, found: Scan) -> None:
    sql = """SELECT sum(length_bytes), sum(stored_bytes), count(*) FROM extents JOIN inodes USING (inode)
        WHERE path LIKE '%/text' AND flags = 'compressed'"""
    [(held, taken, extents)] = found.query(sql)
    assert held >= 2_000_000 > 20 * taken
    assert extents == -(-held // 131072)
