"""Scans with a recording of calls: which files were used, as stat and filefrag know them, and programs that know what they read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from make_recording import RecordingMaker
from sysdock.analysis import Session
from sysdock.cli import sysdock
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.recording import Recording
from sysdock.text import counted

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "native"))
from ext_images import needs
from ext_images import run as run_tool
from loops import MIB, filefrag, interleaved, made
from recorders import RECORDERS, recorder_or_skip

MAKE = {
    "ext4": ["mkfs.ext4", "-q"],
    "xfs": ["mkfs.xfs", "-q", "-m", "rmapbt=0"],
    "btrfs": ["mkfs.btrfs", "-q"],
}
READ_NS = 40_000_000
AIO = Path(__file__).resolve().parents[3] / "testdata" / "programs" / "aio.py"
# Each page of a file is read through memory, in order; of another the second page is written so, of a third a copy.
MAPS = """import mmap, sys
for name, access in zip(sys.argv[1:], (mmap.ACCESS_READ, mmap.ACCESS_WRITE, mmap.ACCESS_COPY)):
    with open(name, "r+b") as file, mmap.mmap(file.fileno(), 0, access=access) as content:
        if access == mmap.ACCESS_READ:
            sum(content[at] for at in range(0, len(content), 4096))
        else:
            content[4096] = 1
"""


@pytest.fixture(params=MAKE)
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A file system with a fragmented file, one with two names, and on btrfs one in a subvolume."""
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
        {
            "t": at,
            "call": call,
            "path": str(path),
            "kind": "file",
            "transferred_bytes": 4096,
            "dur_ns": READ_NS,
        }
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
        "used_file_gone": '[{"code":"disk/files_of_recording","files":1}]',
        "used_file_elsewhere": '[{"code":"disk/files_of_recording","files":1}]',
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
        assert (finding.status, counted(files, "used file") in finding.reason) == ("ok", True)
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


def usage(root: Path, used: Path, tmp_path: Path, library: Library) -> dict[str, tuple]:
    """What a scan notes of each used file: calls, faults, bytes read and written, time."""
    scan(root, "--used-by", used, "-o", tmp_path / "scan", "--no-measure")
    with Session(Recording.open(tmp_path / "scan"), library) as session:
        sql = """SELECT path, calls, faults, read_bytes, written_bytes, time_ns
            FROM file_usage JOIN inodes USING (inode)"""
        return {Path(path).name: tuple(row) for path, *row in session.fetch(sql)}


def busy_ns(spans: list[tuple[int, int]]) -> int:
    """Time during which at least one of them was in progress: a second implementation that is simple enough to be correct."""
    ends = sorted({time for span in spans for time in span})
    return sum(
        end - begin
        for begin, end in pairwise(ends)
        if any(first <= begin and end <= last for first, last in spans)
    )


@pytest.mark.parametrize("root", ["ext4"], indirect=True)
@pytest.mark.parametrize("recorder", RECORDERS)
def test_operations_of_libaio_count_once_for_the_time_that_they_share(
    root: Path, native: Path, recorder: str, tmp_path: Path, library: Library
) -> None:
    command = [sys.executable, "-I", "-S", AIO, root / "data"]
    done = recorder_or_skip(native, recorder).record(tmp_path / "run", *command)
    assert done.returncode == 0, done.stderr
    os.sync()
    with Session(Recording.open(tmp_path / "run"), library) as session:
        where = f"FROM calls WHERE path = '{root}/data' AND class IN ('read', 'write')"
        spans = session.fetch(
            f"SELECT ts_ns, ts_ns + dur_ns {where} AND via IS NOT NULL AND dur_ns IS NOT NULL"
        )
        [(calls, in_calls_ns, written)] = session.fetch(
            f"""SELECT count(*), sum(dur_ns) FILTER (WHERE via IS NULL),
            sum(transferred_bytes) FILTER (WHERE class = 'write') {where}"""
        )
    counted = usage(root, tmp_path / "run", tmp_path, library)["data"]
    # The program reads 1,024 blocks of 4 KiB by libaio, and three bytes by a call.
    assert counted == (calls, 0, 1024 * 4096 + 3, written, in_calls_ns + busy_ns(spans))
    assert calls > 1024
    assert busy_ns(spans) < sum(end - begin for begin, end in spans)


@pytest.mark.parametrize("root", ["ext4"], indirect=True)
@pytest.mark.parametrize("recorder", RECORDERS)
def test_what_is_read_through_memory_counts_where_it_was_recorded(
    root: Path, native: Path, recorder: str, tmp_path: Path, library: Library
) -> None:
    sizes = {"read": 300 * 4096, "written": 5 * 4096, "copied": 5 * 4096}
    for name, size in sizes.items():
        (root / name).write_bytes(os.urandom(size))
    os.sync()
    command = [sys.executable, "-I", "-S", "-c", MAPS, *(root / name for name in sizes)]
    done = recorder_or_skip(native, recorder).record(tmp_path / "run", *command)
    assert done.returncode == 0, done.stderr
    os.sync()
    counted = usage(root, tmp_path / "run", tmp_path, library)
    if recorder == "strace":
        # It sees the mappings, and no touch of them.
        assert counted == {}
        return
    with Session(Recording.open(tmp_path / "run"), library) as session:
        sql = (
            "SELECT count(*), sum(dur_ns), count(*) - count(mapped_bytes) FROM file_faults WHERE path = '{}'"
        )
        faults = {name: session.fetch(sql.format(root / name))[0] for name in sizes}
    assert {name: (row[1], row[4]) for name, row in counted.items()} == {
        name: (count, time) for name, (count, time, _) in faults.items()
    }
    if not faults["read"][2]:
        assert counted["read"][2:4] == (sizes["read"], 0)
    assert 4096 * faults["read"][0] <= counted["read"][2] <= sizes["read"]
    assert (counted["written"][3], counted["copied"][3]) == (4096, 0)


@pytest.mark.parametrize("root", ["ext4"], indirect=True)
def test_requests_of_io_uring_count(root: Path, native: Path, tmp_path: Path, library: Library) -> None:
    needs("fio")
    (root / "data").write_bytes(os.urandom(4 * MIB))
    os.sync()
    command = ["fio", "--name=x", "--bs=4k", "--size=4m", "--rw=randread", "--ioengine=io_uring"]
    command += ["--iodepth=16", f"--filename={root}/data", "--output=/dev/null"]
    done = recorder_or_skip(native, "kernel").record(tmp_path / "run", *command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    calls, faults, read, written, time = usage(root, tmp_path / "run", tmp_path, library)["data"]
    # fio reads each block once, in an order of its own.
    assert (faults, read, written) == (0, 4 * MIB, 0)
    duration_ns = Recording.open(tmp_path / "run").manifest["duration_ns"]
    assert calls >= 1024
    assert 0 < time < duration_ns
