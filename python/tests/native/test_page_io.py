"""What the disk does for files, against sizes of files, mincore and what the kernel counted of each process."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from recorders import recorder_or_skip
from scenes import MIB, PAGE, SIZE, CannotBeMadeError, make_cold

Query = Callable[[Path, str], list[tuple]]


def rounded(size: int) -> int:
    """Bytes of the pages of a file."""
    return -(-size // PAGE) * PAGE


def data_of(file: Path) -> int:
    """Bytes of a file that are no hole."""
    found, place = 0, 0
    with file.open("rb") as opened:
        while place < file.stat().st_size:
            begin = os.lseek(opened.fileno(), place, os.SEEK_DATA)
            place = os.lseek(opened.fileno(), begin, os.SEEK_HOLE)
            found += place - begin
    return found


@dataclass(frozen=True)
class Recorded:
    """A recording of the script, and what mincore said of its files behind it."""

    rec: Path
    files: Path
    resident_at_start: int


@pytest.fixture(scope="module")
def recorded(scene: Callable[..., Path]) -> Recorded:
    folder = scene("page_cache")
    return Recorded(folder / "rec", folder / "files", int((folder / "resident").read_text()))


def bytes_of(recorded: Recorded, query: Query, name: str, where: str) -> int:
    """Bytes of the requests for a file."""
    sql = (
        "SELECT coalesce(sum(length_bytes), 0)::BIGINT FROM page_io AS f JOIN paths USING (path_id)"
        f" WHERE path = '{recorded.files / name}' AND {where}"
    )
    return query(recorded.rec, sql)[0][0]


READ = "f.kind <> 'write'"
WRITTEN = "f.kind = 'write'"


def test_nothing_is_lost(recorded: Recorded, manifest: Callable) -> None:
    stated = manifest(recorded.rec)
    assert (stated["lost_events"], stated["issues"]) == (0, {})
    assert {"family": "page_io", "missing": None} in stated["families"]


def test_a_cold_file_is_read_once(recorded: Recorded, query: Query) -> None:
    """It is read twice; whose calls the device served is that of the first."""
    assert bytes_of(recorded, query, "whole", READ) == rounded(SIZE)
    readers = query(
        recorded.rec,
        f"SELECT DISTINCT task_id FROM page_io JOIN paths USING (path_id) WHERE path = '{recorded.files / 'whole'}'",
    )
    cats = query(recorded.rec, "SELECT task_id FROM processes WHERE command = 'cat whole' ORDER BY task_id")
    assert (len(cats), readers) == (2, cats[:1])


def test_read_ahead_brings_what_is_in_memory_then(recorded: Recorded, query: Query) -> None:
    brought = bytes_of(recorded, query, "start", READ)
    assert 65536 <= brought < SIZE
    # Machines with proactive reclaim (DAMON) take single pages back before they are counted.
    assert 0 <= brought - recorded.resident_at_start <= 16384


@pytest.mark.parametrize("name", ["sparse", "parted"])
def test_holes_are_not_read(recorded: Recorded, query: Query, name: str) -> None:
    assert bytes_of(recorded, query, name, READ) == data_of(recorded.files / name)
    if data_of(recorded.files / name) < (recorded.files / name).stat().st_size:
        whole = f"{READ} AND offset_bytes = 0 AND length_bytes > {16 * PAGE}"
        assert bytes_of(recorded, query, name, whole) == 0


def test_places_are_in_the_file_and_different(recorded: Recorded, query: Query) -> None:
    """The device gave each page of `whole` once: its requests lie side by side."""
    rows = query(
        recorded.rec,
        "SELECT offset_bytes, length_bytes FROM page_io AS f JOIN paths USING (path_id)"
        f" WHERE path = '{recorded.files / 'whole'}' ORDER BY 1",
    )
    place = 0
    for offset, length in rows:
        assert offset == place
        place += length
    assert place == rounded(SIZE)


def test_direct_io_is_of_the_file_of_its_call(recorded: Recorded, query: Query) -> None:
    assert bytes_of(recorded, query, "direct", f"{READ} AND pages = 'memory'") == 8 * MIB
    assert bytes_of(recorded, query, "written_direct", f"{WRITTEN} AND pages = 'memory'") == 3 * MIB


@pytest.mark.parametrize(
    ("name", "size"),
    [("synced", 10 * MIB), ("later", 10 * MIB), ("renamed", 2 * MIB), ("copy", SIZE)],
)
def test_what_was_written_is_written_back(recorded: Recorded, query: Query, name: str, size: int) -> None:
    """Also by threads of the kernel; a file that was renamed since is known by the name that it was written by."""
    assert bytes_of(recorded, query, name, WRITTEN) == rounded(size)


def test_what_others_wrote_is_not_there(recorded: Recorded, query: Query) -> None:
    assert bytes_of(recorded, query, "of_others", "true") == 0
    nameless = "SELECT count(*) FROM page_io WHERE path_id IS NULL AND pages = 'file'"
    assert query(recorded.rec, nameless) == [(0,)]


def test_reads_are_those_that_the_kernel_counted(recorded: Recorded, query: Query) -> None:
    """For each process, with what the file system read for itself."""
    rows = query(
        recorded.rec,
        "SELECT command, device_read_bytes, (SELECT coalesce(sum(length_bytes), 0) FROM page_io AS f"
        f" WHERE f.task_id = p.task_id AND {READ}) FROM processes AS p",
    )
    assert len(rows) > 10
    assert [counted for _, counted, _ in rows] == [summed for _, _, summed in rows], rows


def test_the_analysis_says_what_came_from_the_cache(
    recorded: Recorded, query: Query, open_session: Callable
) -> None:
    result = open_session(recorded.rec).run("io/page_io")
    names = [column.name for column in result.columns]
    rows = {Path(row[0]).name: dict(zip(names, row, strict=True)) for row in result.rows()}
    assert rows["whole"]["read_bytes"] == 2 * SIZE
    assert (rows["whole"]["cached"], rows["whole"]["unasked_bytes"]) == (0.5, rounded(SIZE) - SIZE)
    assert rows["start"]["cached"] == 0
    assert rows["start"]["unasked_bytes"] == bytes_of(recorded, query, "start", READ) - 65536
    assert (rows["direct"]["direct_bytes"], rows["direct"]["cached"]) == (8 * MIB, None)
    assert (rows["later"]["written_bytes"], rows["later"]["written_back_bytes"]) == (10 * MIB, 10 * MIB)


def test_an_inherited_file_is_known(native: Path, tmp_path: Path, query: Query) -> None:
    """Its first pages are read before any call on it has ended."""
    recorder = recorder_or_skip(native, "kernel")
    file = tmp_path / "inherited"
    try:
        make_cold(file)
    except CannotBeMadeError as error:
        pytest.skip(str(error))
    with file.open("rb") as opened:
        recorder.record(
            tmp_path / "rec", "cat", stdin=opened, stdout=subprocess.DEVNULL, capture_output=False
        )
    sql = f"SELECT sum(length_bytes) FROM page_io JOIN paths USING (path_id) WHERE path = '{file}'"
    assert query(tmp_path / "rec", sql) == [(rounded(SIZE),)]


def test_it_can_be_left_out(native: Path, tmp_path: Path, manifest: Callable) -> None:
    recorder = recorder_or_skip(native, "kernel")
    recorder.record(tmp_path / "rec", "true", recorder_options=("--what", "io"))
    assert "page_io" not in manifest(tmp_path / "rec")["tables"]
