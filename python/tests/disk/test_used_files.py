"""Scans with a recording of calls: which files were used, as stat and filefrag know them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from make_recording import RecordingMaker
from sysdock.analysis import Session
from sysdock.cli import sysdock
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.recording import Recording

sys.path.insert(0, str(Path(__file__).parent))
from ext_images import run as run_tool
from loops import MIB, filefrag, interleaved, made

MAKE = {
    "ext4": ["mkfs.ext4", "-q"],
    "xfs": ["mkfs.xfs", "-q", "-m", "rmapbt=0"],
    "btrfs": ["mkfs.btrfs", "-q"],
}
READ_NS = 40_000_000


@pytest.fixture(params=MAKE)
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A file system with a file in pieces, one with two names, and on btrfs one in a subvolume."""
    with made(tmp_path / "image", MAKE[request.param], 512 * MIB) as point:
        if request.param == "btrfs":
            run_tool("btrfs", "subvolume", "create", point / "inner")
        else:
            (point / "inner").mkdir()
        interleaved(point / "broken", files=2, pieces=40, piece=8192)
        interleaved(point / "inner" / "broken", files=2, pieces=30, piece=8192)
        os.link(point / "broken" / "part0", point / "other name")
        os.sync()
        yield point


def recording(root: Path, tmp_path: Path, library: Library) -> Path:
    """A recording in which some files are read, by one name or two; one that is gone, one elsewhere."""
    used = [
        root / "broken" / "part0",
        root / "other name",
        root / "inner" / "broken" / "part1",
        root / "gone",
        Path("/etc/passwd"),
    ]
    calls = [
        {"t": at, "call": call, "path": str(path), "kind": "file", "moved_bytes": 4096, "dur_ns": READ_NS}
        for path in used
        for at, call in enumerate(("read", "read", "write"))
    ]
    return RecordingMaker(library, tmp_path).make(calls, "run")


def scan(*words: object) -> Result:
    """Runs `sysdock disk scan`."""
    words = ("disk", "scan", *map(str, words))
    return CliRunner().invoke(sysdock, words, catch_exceptions=False, standalone_mode=False)


def test_used_files_are_those_of_stat_and_their_pieces_those_of_filefrag(
    root: Path, tmp_path: Path, library: Library
) -> None:
    scan(root, "--used-by", recording(root, tmp_path, library), "-o", tmp_path / "rec", "--no-measure")
    with Session(Recording.open(tmp_path / "rec"), library) as session:
        sql = """SELECT i.inode, u.calls, u.read_bytes, u.written_bytes, u.time_ns, i.fragments
            FROM file_usage AS u JOIN inodes AS i USING (inode) ORDER BY u.calls"""
        (inner, outer) = session.fetch(sql)
        issues = dict(session.fetch("SELECT issue, detail FROM import_issues"))
    files = [root / "inner" / "broken" / "part1", root / "broken" / "part0"]
    counted = filefrag(files)
    for row, path, names in ((inner, files[0], 1), (outer, files[1], 2)):
        # In a subvolume of btrfs the number of the tree stands before that of the inode.
        assert row[0] & ((1 << 48) - 1) == path.stat().st_ino
        assert row[1:] == (3 * names, 8192 * names, 4096 * names, 3 * READ_NS * names, counted[path])
    assert issues == {
        "used_file_gone": "1 files of the recording",
        "used_file_elsewhere": "1 files of the recording",
    }


@pytest.mark.parametrize("root", ["ext4"], indirect=True)
def test_the_rule_finds_files_that_were_read(root: Path, tmp_path: Path, library: Library) -> None:
    used = recording(root, tmp_path, library)
    for target, files in ((root, 2), (root / "inner", 1)):
        out = tmp_path / f"rec{files}"
        scan(target, "--used-by", used, "-o", out, "--no-measure")
        with Session(Recording.open(out), library) as session:
            rows = session.run("disk/hot_files").rows()
            [finding] = [each for each in session.diagnose() if each.rule == "disk/fragmented_hot_files"]
        assert len(rows) == files
        assert (finding.status, f"{files} used file(s)" in finding.reason) == ("ok", True)
    scan(root, "-o", tmp_path / "without", "--no-measure")
    with Session(Recording.open(tmp_path / "without"), library) as session:
        [finding] = [each for each in session.diagnose() if each.rule == "disk/fragmented_hot_files"]
    assert finding.status == "unknown"


@pytest.mark.parametrize("root", ["ext4"], indirect=True)
def test_mistakes_are_told(root: Path, tmp_path: Path, library: Library) -> None:
    scan(root, "-o", tmp_path / "of a disk", "--no-measure")
    with pytest.raises(UserError, match="holds no calls"):
        scan(root, "--used-by", tmp_path / "of a disk", "-o", tmp_path / "a")
    with pytest.raises(UserError, match="reads and writes no files"):
        scan(root, "--used-by", RecordingMaker(library, tmp_path).make([], "idle"), "-o", tmp_path / "b")
    image = tmp_path / "plain"
    run_tool("mke2fs", "-q", "-F", image, "8M")
    scan(image, "--used-by", recording(root, tmp_path, library), "-o", tmp_path / "c")
    assert not (tmp_path / "c").exists()
