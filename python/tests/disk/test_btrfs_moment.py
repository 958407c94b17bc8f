"""btrfs that is written to while it is scanned, and what files share: compared with `btrfs filesystem du`, with a writer in the background."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from ext_images import run
from loops import MIB, fill_with_all_kinds, made
from scans import Scan

PIECES = """SELECT DISTINCT device, physical_bytes AS first, coalesce(stored_bytes, length_bytes) AS length
    FROM extents WHERE physical_bytes IS NOT NULL"""


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """One with files in it, mounted."""
    with made(tmp_path / "image", ["mkfs.btrfs", "-q"], 512 * MIB) as point:
        fill_with_all_kinds(point)
        yield point


@contextmanager
def written(root: Path, pause: float) -> Iterator[None]:
    """Somebody makes, rewrites and removes files meanwhile."""
    folder = root / "written"
    folder.mkdir(exist_ok=True)
    is_over = threading.Event()

    def write() -> None:
        chosen = random.Random(1)
        while not is_over.is_set():
            path = folder / str(chosen.randrange(40))
            path.unlink(missing_ok=True)
            path.write_bytes(os.urandom(chosen.randrange(1, 40) * 8192))
            if pause or chosen.random() < 0.2:
                os.sync()
            time.sleep(pause)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        is_over.set()
        writer.join()


def overlaps(found: Scan) -> int:
    """Pairs of a free piece and one of a file that have a byte in common."""
    sql = f"""SELECT count(*) FROM free_extents AS f JOIN ({PIECES}) AS e ON e.device = f.device
        AND e.first < f.physical_bytes + f.length_bytes AND f.physical_bytes < e.first + e.length"""
    return int(str(found.one(sql)))


def missing(found: Scan) -> int:
    """Bytes of the device that are in no row; less than none: in several."""
    return int(
        str(
            found.one(
                f"""SELECT (SELECT size_bytes FROM file_systems) - (SELECT sum(length) FROM ({PIECES}))
                - (SELECT sum(length_bytes) FROM free_extents)
                - (SELECT sum(length_bytes) FROM layout WHERE part <> 'group')"""
            )
        )
    )


def test_what_waits_is_written_back_and_all_is_of_one_state(root: Path, scan: Callable) -> None:
    (root / "late").write_bytes(os.urandom(MIB))
    found = scan(root, "--no-measure")
    assert found.query("SELECT moment FROM file_systems") == [("one",)]
    assert found.query("SELECT allocated_bytes FROM inodes WHERE path LIKE '%/late'") == [(MIB,)]
    assert (overlaps(found), missing(found)) == (0, 0)


def test_a_scan_between_two_writes_is_of_one_state(root: Path, scan: Callable) -> None:
    with written(root, pause=0.2):
        found = [scan(root, "--no-measure") for _ in range(12)]
    moments = [each.one("SELECT moment FROM file_systems") for each in found]
    # On a busy machine a pause may be too short for some of them.
    assert moments.count("one") >= 6, moments
    for each, moment in zip(found, moments, strict=True):
        assert overlaps(each) == 0
        assert moment != "one" or missing(each) == 0
    assert all("address_in_no_chunk" not in each.issues() for each in found)


def test_where_writes_never_cease_the_scan_says_so_and_frees_nothing_of_files(
    root: Path, scan: Callable
) -> None:
    with written(root, pause=0):
        found = [scan(root, "--no-measure") for _ in range(6)]
    for each in found:
        [(moment, reason)] = each.query("SELECT moment, reason FROM file_systems")
        assert overlaps(each) == 0
        assert (moment == "many") == ("disk/written_meanwhile" in reason)
        assert moment in ("one", "many")
        assert moment == "many" or missing(each) == 0


def test_what_is_shared_is_that_of_btrfs(root: Path, scan: Callable) -> None:
    """Shared bytes of each file: by a reflink, by a snapshot, and within the file."""
    run("cp", "--reflink=always", root / "large", root / "again")
    (root / "anew").write_bytes(os.urandom(MIB))
    os.sync()
    with (root / "anew").open("r+b") as file:
        file.seek(MIB // 2)
        file.write(os.urandom(65536))
    os.sync()
    own = scan(root, "--no-measure")
    sql = (
        "SELECT coalesce(sum(coalesce(stored_bytes, length_bytes)), 0) FROM extents JOIN inodes USING (inode)"
    )
    sql += " WHERE contains(flags, 'shared') AND path LIKE "
    assert own.query(f"{sql} '%/anew'") == [(0,)]
    run("btrfs", "subvolume", "snapshot", root, root / "snapshot")
    (root / "large").unlink()
    (root / "alone").write_bytes(os.urandom(MIB))
    os.sync()
    found = scan(root, "--no-measure")
    for path in (
        "again",
        "anew",
        "alone",
        "broken/part0",
        "holes",
        "snapshot/large",
        "snapshot/folder/small299",
    ):
        said = subprocess.run(
            ["btrfs", "filesystem", "du", "--raw", root / path], capture_output=True, text=True, check=True
        )
        total, exclusive, *_ = map(int, said.stdout.splitlines()[1].split()[:2])
        [(shared,)] = found.query(f"{sql} '{root}/{path}'")
        assert shared == total - exclusive, path
