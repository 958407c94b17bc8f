"""`sysdock disk fragment`, `diff`, `snapshot` and `series` on a real file system."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sampling import some
from sysdock.cli import sysdock
from sysdock.disk.difference import difference, total_columns
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.recording import Recording

sys.path.insert(0, str(Path(__file__).parent))
from ext_images import run as run_tool
from loops import MIB, filefrag, fill_with_all_kinds, made
from scans import scanned

MAKE = {
    "ext4": ["mkfs.ext4", "-q", "-N", "65536"],
    "xfs": ["mkfs.xfs", "-q", "-m", "rmapbt=1"],
    "btrfs": ["mkfs.btrfs", "-q"],
}


@pytest.fixture(params=MAKE)
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """An empty file system."""
    with made(tmp_path / "image", MAKE[request.param], 512 * MIB) as point:
        yield point


@pytest.fixture
def run() -> Callable[..., Result]:
    """Runs `sysdock disk`."""

    def run_(*words: object) -> Result:
        return CliRunner().invoke(
            sysdock, ["disk", *map(str, words)], catch_exceptions=False, standalone_mode=False
        )

    return run_


def pieces(root: Path, folder: Path) -> int:
    """Fragments of all files in a folder, as a scan finds them."""
    os.sync()
    [(count,)] = scanned(root, folder).query("SELECT sum(fragments) FROM inodes WHERE path LIKE '%/part%'")
    return count


def test_interleaved_files_are_in_as_many_pieces_as_foretold(
    root: Path, run: Callable, tmp_path: Path
) -> None:
    run("fragment", root / "broken", "--files", 8, "--size", MIB, "--piece", 8192)
    assert pieces(root, tmp_path / "rec") == 8 * 128


@pytest.fixture(params=["ext4", "xfs", "btrfs"])
def aged(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A file system that small files filled, of which every other one is gone: holes of 4 to 96 KiB."""
    content = os.urandom(98304)
    sizes = itertools.cycle([4096, 12288, 20480, 40960, 98304])
    with made(tmp_path / "aged", MAKE[request.param], 320 * MIB) as point:
        old = point / "old"
        old.mkdir()
        with suppress(OSError):
            for number in itertools.count():
                (old / str(number)).write_bytes(content[: next(sizes)])
        os.sync()
        for number in range(0, len(list(old.iterdir())), 2):
            (old / str(number)).unlink()
        os.sync()
        yield point


@pytest.mark.parametrize(
    ("files", "size", "piece"),
    [
        pytest.param(4, 2 * MIB, 8192, id="pieces that fit into holes"),
        pytest.param(4, 16 * MIB, 262144, id="pieces that do not"),
        pytest.param(1, 32 * MIB, 65536, id="one file that should be in one piece"),
        pytest.param(4, 2 * MIB + 1000, 5000, id="pieces that are no whole blocks"),
    ],
)
def test_on_an_old_file_system_the_number_of_pieces_is_that_of_filefrag(
    aged: Path, run: Callable, files: int, size: int, piece: int
) -> None:
    done = run("fragment", aged / "broken", "--files", files, "--size", size, "--piece", piece)
    counted = sum(filefrag(sorted((aged / "broken").glob("part*"))).values())
    planned = files * -(-size // piece) if files > 1 else 1
    if counted == planned:
        assert f", {counted:,} fragments;" in done.stderr
    else:
        assert f"{planned:,} fragments expected, got {counted:,}: " in done.stderr
    assert done.return_value == int(abs(counted - planned) > planned / 100)
    # Large pieces find no holes of their size: without a count, the number that is said would be wrong.
    if files == 1:
        assert counted > 1


def test_files_for_which_there_is_no_room_are_an_error_at_their_folder(aged: Path, run: Callable) -> None:
    with pytest.raises(UserError, match="could not be made: no space left") as error:
        run("fragment", aged / "broken", "--files", 64, "--size", 8 * MIB, "--piece", 65536)
    assert error.value.place == str(aged / "broken")


def test_where_nobody_tells_where_files_lie_the_number_is_not_counted(run: Callable) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        done = run("fragment", Path(folder) / "broken", "--files", 2, "--size", MIB, "--piece", 8192)
    assert "256 fragments expected, and not counted: " in done.stderr
    assert done.return_value == 0


@pytest.mark.parametrize("piece", some([16384, 65536], 2))
def test_files_in_the_holes_of_a_comb_are_in_as_many_pieces_as_foretold(
    root: Path, run: Callable, piece: int
) -> None:
    # The first files leave the inodes of the others in another place than where the free space is.
    run("fragment", root / "whole", "--files", 4, "--size", 8 * MIB, "--piece", 8 * MIB)
    done = run(
        "fragment", root / "broken", "--mode", "comb", "--files", 8, "--size", 8 * MIB, "--piece", piece
    )
    foretold = 8 * 8 * MIB // piece
    counted = sum(filefrag(sorted((root / "broken").glob("part*"))).values())
    assert re.search(rf"\b{counted:,}(: | fragments;)", done.stderr)
    assert done.return_value == 0
    assert counted == pytest.approx(foretold, rel=0.01)


def test_what_writers_by_turns_break_is_not_foretold(root: Path, run: Callable, tmp_path: Path) -> None:
    words = ("--files", 8, "--size", MIB, "--piece", 65536, "--at-once", 4)
    done = run("fragment", root / "broken", "--mode", "classic", *words)
    files = sorted((root / "broken").glob("part*"))
    assert [file.stat().st_size for file in files] == 8 * [MIB]
    # Allocated late, by turns or not: at least a piece for each file, at most one for each write.
    counted = sum(filefrag(files).values())
    assert 8 <= counted <= 8 * 16
    assert f"{counted:,} fragments, a number that depends on the file system" in done.stderr
    assert pieces(root, tmp_path / "rec") == counted


def test_a_copy_is_told_as_moved(root: Path, run: Callable, tmp_path: Path) -> None:
    run("fragment", root / "broken", "--files", 4, "--size", MIB, "--piece", 8192)
    os.sync()
    scanned(root, tmp_path / "before")
    shutil.copyfile(root / "broken" / "part0000", root / "copy")
    os.rename(root / "copy", root / "broken" / "part0000")
    (root / "broken" / "part0001").unlink()
    (root / "new").write_bytes(os.urandom(5000))
    os.sync()
    scanned(root, tmp_path / "after")
    done = run("diff", tmp_path / "before", tmp_path / "after", "--format", "json")
    rows = {
        Path(row["path"]).name: row
        for row in json.loads(done.stdout)
        if row["path"].count("part") or "new" in row["path"]
    }
    assert {name: row["state"] for name, row in rows.items()} == {
        "part0000": "moved",
        "part0001": "lost",
        "new": "new",
    }
    moved = rows["part0000"]
    assert (moved["fragments_before"], moved["bytes_before"], moved["bytes_after"]) == (128, MIB, MIB)
    assert moved["kept_bytes"] + moved["transferred_bytes"] == MIB
    assert moved["kept_bytes"] < MIB / 10
    assert rows["part0001"]["transferred_bytes"] == 0


@pytest.mark.parametrize("root", ["ext4"], indirect=True)
def test_a_folder_and_a_file_are_answered_too(root: Path, run: Callable, tmp_path: Path) -> None:
    run("fragment", root / "broken", "--files", 2, "--size", MIB, "--piece", 8192)
    os.sync()
    of_folder = run("scan", root / "broken", "-o", tmp_path / "folder")
    of_file = run("scan", root / "broken" / "part0000", "-o", tmp_path / "file")
    assert "fiemap" in of_folder.stdout
    assert "\nfragments           257\n" in of_folder.stdout
    assert "\nfragments           128\n" in of_file.stdout
    assert (of_folder.exception, of_file.exception) == (None, None)


@pytest.mark.parametrize("root", ["ext4"], indirect=True)
def test_a_series_keeps_the_newest(root: Path, run: Callable, tmp_path: Path) -> None:
    series = tmp_path / "series"
    for number in range(3):
        (root / f"file{number}").write_bytes(os.urandom(5000))
        os.sync()
        run("snapshot", root, "-o", series, "--keep", 2)
    files = [row["files"] for row in json.loads(run("series", series, "--format", "json").stdout)]
    assert len(files) == 2
    assert files[1] == files[0] + 1
    assert all(Recording.open(folder).families == {"scan"} for folder in series.iterdir())


def counted(root: Path) -> dict[str, int]:
    """The same totals by stat(2) and filefrag: of an inode with several names one."""
    inodes = {(path.lstat().st_dev, path.lstat().st_ino): path for path in (root, *root.rglob("*"))}
    stored = [
        path for path in inodes.values() if stat.S_IFMT(path.lstat().st_mode) in (stat.S_IFREG, stat.S_IFDIR)
    ]
    told = filefrag(stored)
    # filefrag cannot query directories of xfs.
    bmap = {path: run_tool("xfs_bmap", path) for path in stored if path not in told}
    of_bmap = [sum(": [" in row and "hole" not in row for row in said.splitlines()) for said in bmap.values()]
    fragments = [*told.values(), *of_bmap]
    return {
        "files": len(inodes),
        "fragments": sum(fragments),
        "fragmented_files": sum(number > 1 for number in fragments),
    }


def test_a_series_and_a_comparison_give_the_totals_of_filefrag(
    root: Path, run: Callable, tmp_path: Path
) -> None:
    series = tmp_path / "series"
    expected = []
    for step in range(2):
        if step == 0:
            fill_with_all_kinds(root)
            os.mkfifo(root / "pipe")
            (root / "long link").symlink_to("x" * 200)
        else:
            (root / "broken" / "part0").unlink()
            run("fragment", root / "later", "--files", 3, "--size", MIB, "--piece", 65536)
        os.sync()
        run("snapshot", root, "-o", series)
        expected.append(counted(root))
    lines = json.loads(run("series", series, "--format", "json").stdout)
    library = Library()
    names = [column.name for column in total_columns(library)]
    before, after = (Recording.open(folder) for folder in sorted(series.iterdir()))
    totals = [dict(zip(names, row, strict=True)) for row in difference(before, after, library).totals]
    assert [total.pop("scan") for total in totals] == ["before", "after"]
    for line in lines:
        del line["time"]
    assert totals == lines
    assert [
        {name: line[name] for name in counts} for line, counts in zip(lines, expected, strict=True)
    ] == expected


@pytest.mark.parametrize("root", ["ext4"], indirect=True)
def test_two_file_systems_are_not_compared(root: Path, run: Callable, tmp_path: Path) -> None:
    with made(tmp_path / "other", MAKE["ext4"], 64 * MIB) as other:
        scanned(root, tmp_path / "a")
        scanned(other, tmp_path / "b")
    with pytest.raises(UserError, match="two file systems"):
        run("diff", tmp_path / "a", tmp_path / "b")


def test_a_comb_needs_to_know_where_files_lie(run: Callable) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, pytest.raises(UserError, match="FIEMAP"):
        run("fragment", Path(folder) / "broken", "--mode", "comb")


def test_a_path_from_here_is_found_on_a_map(
    run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_bytes(b"x" * MIB)
    os.sync()
    monkeypatch.chdir(tmp_path)
    run("scan", "data", "-o", "rec", "--no-measure")
    run("map", "rec", "-o", "map.png", "--size", 512, "--find", "data/file")
    assert (tmp_path / "map.png").exists()


@pytest.mark.parametrize("root", ["ext4"], indirect=True)
def test_a_series_removes_only_what_it_made(root: Path, run: Callable, tmp_path: Path) -> None:
    """A name that is a time, or a copy of one of its scans, is somebody's own."""
    series = tmp_path / "series"
    run("snapshot", root, "-o", series)
    [first] = series.iterdir()
    shutil.copytree(first, series / "2001-01-01T00-00-00Z")
    run("scan", root, "-o", series / "2002-01-01T00-00-00Z")
    for _ in range(2):
        run("snapshot", root, "-o", series, "--keep", 1)
    left = sorted(folder.name for folder in series.iterdir())
    assert left[:2] == ["2001-01-01T00-00-00Z", "2002-01-01T00-00-00Z"]
    assert len(left) == 3
    assert not first.exists()
