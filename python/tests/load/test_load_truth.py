"""What the generator counts is what the kernel did: held against the device, the processes and other readings of the same run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from load_runs import left, load
from sysdock.analysis import Session
from sysdock.recording import Recording

sys.path.insert(0, str(Path(__file__).parents[1] / "disk"))
from loops import MIB, made

OPERATIONS = ["create", "stat", "stat_cold", "open", "readdir", "rename", "remove", "mkdir", "rmdir"]


@pytest.fixture(scope="module")
def ext4(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file system on a device of its own, so that nobody else reads from it."""
    image = tmp_path_factory.mktemp("load") / "image"
    with made(image, ["mkfs.ext4", "-q"], 300 * MIB) as point:
        yield point


@pytest.fixture
def memory() -> Path:
    """A file system without a device."""
    path = Path("/dev/shm")
    if not os.access(path, os.W_OK):
        pytest.skip("/dev/shm cannot be written")
    return path


def test_every_item_gives_its_rows_and_leaves_nothing(ext4: Path):
    before = left(ext4)
    wanted = {
        "transfer": ["write", "read"],
        "volume": ["write", "read"],
        "mmap": ["write", "read"],
        "metadata": OPERATIONS,
        "log": ["append"],
        "random_read": ["read"],
        "random_mix": ["read", "write", "append"],
        "depth": ["read"],
        "control": ["compute"],
    }
    for item, operations in wanted.items():
        options = ["--item", item, "--size", "16MiB", "--for", "200ms", "--processes", "2", "--files", "50"]
        ran = load(ext4, *options)
        assert ran.status == 0, ran.said
        assert [row["operation"] for row in ran.rows] == operations
        assert all(row["errors"] == 0 and row["operations"] > 0 for row in ran.rows), ran.rows
    assert left(ext4) == before


def test_bytes_are_those_that_were_asked_for_and_the_device_got_them(ext4: Path):
    ran = load(ext4, "--item", "transfer", "--length", "1MiB", "--size", "64MiB", "--processes", "4")
    write, read = ran.rows
    assert write["bytes"] == read["bytes"] == 64 * MIB
    assert write["operations"] == read["operations"] == 64
    assert write["device_write_bytes"] >= 64 * MIB
    # Metadata is read, too, and nothing else: nobody else uses this device.
    assert 64 * MIB <= read["device_read_bytes"] <= 66 * MIB


def test_rates_are_bytes_by_the_time_from_the_first_start_to_the_last_end(ext4: Path, tmp_path: Path):
    options = ["--item", "random_read", "--direct", "--for", "600ms", "--processes", "20", "--size", "32MiB"]
    ran = load(ext4, *options, "-o", str(tmp_path / "rec"))
    row = ran.only()
    window_s = (row["ended_ns"] - row["started_ns"]) / 1e9
    assert row["bytes"] == 4096 * row["operations"]
    assert row["bytes_per_s"] == pytest.approx(row["bytes"] / window_s)
    assert row["started_ns"] < row["first_end_ns"] <= row["ended_ns"]
    with Session(Recording.open(tmp_path / "rec")) as session:
        [(bytes_, operations, workers)] = session.fetch(
            "SELECT sum(bytes), sum(operations), count(DISTINCT worker) FROM load_intervals"
        )
        assert (bytes_, operations, workers) == (row["bytes"], row["operations"], 20)
        [(first, last)] = session.fetch("SELECT min(ts_ns), max(ts_ns + dur_ns) FROM load_intervals")
        assert row["started_ns"] <= first
        assert last <= row["ended_ns"]
        [(counted, longest)] = session.fetch("SELECT sum(operations), max(high_ns) FROM load_latencies")
        assert counted == row["operations"]
        assert longest >= row["max_ns"]


def test_the_sum_of_what_workers_did_is_never_above_the_window(ext4: Path):
    for processes in (1, 7, 200):
        ran = load(ext4, "--item", "metadata", "--files", "20", "--processes", str(processes))
        assert ran.status == 0, ran.said
        for row in ran.rows:
            window_s = (row["ended_ns"] - row["started_ns"]) / 1e9
            assert row["operations_per_s"] * window_s == pytest.approx(row["operations"])
            if row["operation"] != "readdir":
                assert row["operations"] == 20 * processes


@pytest.mark.parametrize("processes", ["1", "3"])
@pytest.mark.parametrize("item", ["transfer", "random_read", "mmap", "volume", "depth"])
def test_reads_from_memory_are_marked_and_those_of_the_device_are_not(
    ext4: Path, memory: Path, item: str, processes: str
):
    options = ["--item", item, "--size", "48MiB", "--length", "64KiB", "--for", "300ms"]
    options += ["--processes", processes]
    direct = [] if item == "mmap" else ["--direct"]
    from_device = [row for row in load(ext4, *options, *direct).rows if row["operation"] == "read"]
    assert [row["status"] for row in from_device] != ["from_memory"], from_device
    in_memory = [row for row in load(memory, *options).rows if row["operation"] == "read"]
    assert [row["status"] for row in in_memory] == ["from_memory"], in_memory


def test_a_file_in_the_page_cache_is_not_taken_for_the_device(ext4: Path):
    # Read again and again through the page cache: the device reads it once at most.
    ran = load(ext4, "--item", "random_read", "--size", "2MiB", "--for", "500ms")
    assert ran.only()["status"] == "from_memory"
    assert "load/from_memory" in [note["code"] for note in ran.only()["note"]]


def test_what_is_read_is_what_was_written(ext4: Path):
    for layout in ("own", "shared"):
        options = ["--item", "transfer", "--length", "6000", "--size", "20MB", "--processes", "3"]
        ran = load(ext4, *options, "--layout", layout, "--verify")
        assert [row["errors"] for row in ran.rows] == [0, 0], ran.rows
        assert ran.rows[1]["status"] != "damaged"


def test_a_thousand_workers_are_at_the_barrier_together(memory: Path):
    ran = load(memory, "--item", "control", "--processes", "1000", "--for", "1s")
    row = ran.only()
    assert row["processes"] == 1000
    assert row["errors"] == 0
    # All of them came to the end that all of them had.
    assert row["operations"] >= 1000


def test_workers_one_after_the_other_are_no_load_of_all(ext4: Path):
    ran = load(ext4, "--item", "metadata", "--operations", "create", "--files", "1", "--processes", "100")
    assert ran.only()["status"] in ("too_short", "no_overlap")
