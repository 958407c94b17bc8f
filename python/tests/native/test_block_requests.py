"""Requests to block devices, against the program that made them and what the kernel counted of the devices (/sys/block/NAME/stat)."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from scenes import MIB

Query = Callable[[Path, str], list[tuple]]
SECTOR = 512
# Where the file of devices has the counts of an operation: requests, sectors, and milliseconds in both.
PLACES = {"read": (0, 2, 3), "write": (4, 6, 7), "discard": (11, 13, 14), "flush": (15, None, 16)}


@dataclass(frozen=True)
class Device:
    """A device, and what the kernel counted of it."""

    name: str
    counted: list[int]


class Run:
    """A recording of device_requests.py."""

    def __init__(self, folder: Path, query: Query) -> None:
        self.folder, self.files = folder / "rec", folder / "files"
        said = json.loads((folder / "said.json").read_text())
        counts = zip(said["devices"], said["before"], said["after"], strict=True)
        differences = [
            Device(name, [after - before for before, after in zip(*both, strict=True)])
            for name, *both in counts
        ]
        self.raw, self.below = differences
        self.requests: list[tuple] = [tuple(request) for request in said["said"]["requests"]]
        self.together: int = said["said"]["together"]
        self._query = query

    def rows(self, columns: str, where: str) -> list[tuple]:
        """Rows of the stored table."""
        return self._query(
            self.folder, f"SELECT {columns} FROM block_requests LEFT JOIN paths USING (path_id) WHERE {where}"
        )

    def counts(self, device: Device) -> dict[str, tuple[int, int]]:
        """Requests and sectors of a device, by operation."""
        rows = self.rows("op, count(*), sum(length_bytes) // 512", f"device = '{device.name}' GROUP BY op")
        return {op: (requests, sectors) for op, requests, sectors in rows}


def expected(device: Device, only_flushes: int) -> dict[str, tuple[int, int]]:
    """The same as the kernel counted it, which takes what only wants a flush for a write, too: so many."""
    found = {
        op: (device.counted[requests], device.counted[sectors] if sectors else 0)
        for op, (requests, sectors, _) in PLACES.items()
    }
    requests, sectors = found["write"]
    found["write"] = (requests - only_flushes, sectors)
    return {op: counts for op, counts in found.items() if counts[0]}


@pytest.fixture(params=["block_requests", "block_requests_of_all"])
def run(request: pytest.FixtureRequest, scene: Callable[[str], Path], query: Query) -> Run:
    return Run(scene(request.param), query)


@pytest.fixture
def of_command(scene: Callable[[str], Path], query: Query) -> Run:
    return Run(scene("block_requests"), query)


@pytest.fixture
def of_all(scene: Callable[[str], Path], query: Query) -> Run:
    return Run(scene("block_requests_of_all"), query)


def test_nothing_is_lost(of_command: Run, manifest: Callable) -> None:
    stated = manifest(of_command.folder)
    assert stated["tables"]["block_requests"]["lost"] == 0
    assert {"family": "block", "missing": None} in stated["families"]


def test_requests_are_those_that_the_program_made(run: Run) -> None:
    """Each with its sector and bytes. Those that were made together come in any order."""
    rows = run.rows("op, sector * 512, length_bytes", f"device = '{run.raw.name}' ORDER BY ts_ns")
    assert rows[: -run.together] == run.requests[: -run.together]
    assert sorted(rows) == sorted(run.requests)


def test_counts_are_those_of_the_kernel(run: Run) -> None:
    syncs = sum(op == "flush" for op, _, _ in run.requests)
    assert run.counts(run.raw) == expected(run.raw, syncs)


def test_all_requests_of_a_file_system_are_there(of_all: Run) -> None:
    """Also those of its journal, and those for the device above it. How many wanted nothing but a flush, nobody counts."""
    found = of_all.counts(of_all.below)
    only_flushes = of_all.below.counted[PLACES["write"][0]] - found["write"][0]
    assert found == expected(of_all.below, only_flushes)
    assert 0 <= only_flushes <= found["flush"][0]


def test_time_is_that_of_the_kernel(run: Run) -> None:
    """Which counts whole milliseconds, from a little before a request is queued until a little after it is completed."""
    for op, (_, _, milliseconds) in PLACES.items():
        [(taken_ns,)] = run.rows(
            "coalesce(sum(queue_ns + service_ns), 0)", f"device = '{run.raw.name}' AND op = '{op}'"
        )
        counted = run.raw.counted[milliseconds]
        assert counted / 2 - 2 <= taken_ns / 1e6 <= counted + 1, op


def test_depth_counts_what_the_driver_has(run: Run) -> None:
    """One after the other there is one at a time; while the driver can do nothing, each finds one more."""
    depths = run.rows("depth", f"device = '{run.raw.name}' ORDER BY ts_ns + queue_ns")
    alone = len(run.requests) - run.together
    assert depths == [(1,)] * alone + [(number,) for number in range(1, run.together + 1)]
    waited = run.rows(
        "count(*)",
        f"device = '{run.raw.name}' AND op = 'write' AND service_ns BETWEEN 100000000 AND 20000000000",
    )
    assert waited == [(run.together,)]


def test_requests_name_their_thread_and_file(run: Run) -> None:
    """Direct I/O of a device is for the device; a discard and a flush carry nothing."""
    rows = run.rows("op, path, count(*), count(task_id)", f"device = '{run.raw.name}' GROUP BY ALL")
    made = Counter(op for op, _, _ in run.requests)
    device = f"/dev/{run.raw.name}"
    assert {row[:3] for row in rows} == {
        (op, device if op in ("read", "write") else None, number) for op, number in made.items()
    }
    assert all(of_task == number for _, _, number, of_task in rows)


@pytest.mark.parametrize(
    ("name", "op", "size"),
    [
        ("synced", "write", MIB),
        ("synced", "read", MIB),
        ("direct", "write", MIB // 2),
        ("direct", "read", MIB // 4),
    ],
)
def test_requests_of_files_are_known(run: Run, name: str, op: str, size: int) -> None:
    """Through the page cache and past it, on the device that their file system lies on."""
    where = f"path = '{run.files / name}' AND op = '{op}' AND device = '{run.below.name}'"
    assert run.rows("sum(length_bytes)", where) == [(size,)]


def test_flags_say_what_somebody_waits_for(run: Run) -> None:
    """As the kernel marks direct I/O, and what a program reads through the page cache."""
    marked = run.rows("DISTINCT op, flags", f"device = '{run.raw.name}'")
    assert sorted(marked) == [("discard", "sync"), ("flush", ""), ("read", "sync"), ("write", "sync")]
    ahead = run.rows("DISTINCT flags", f"path = '{run.files / 'synced'}' AND op = 'read'")
    assert ahead == [("readahead",)]


def test_page_io_is_part_of_it(of_command: Run, query: Query) -> None:
    """What the page cache handed over for a file is what the device got for it."""
    handed = query(
        of_command.folder,
        "SELECT path, f.kind = 'write', sum(length_bytes) FROM page_io AS f JOIN paths USING (path_id) GROUP BY ALL ORDER BY ALL",
    )
    got = of_command.rows(
        "path, op = 'write', sum(length_bytes)", "path IS NOT NULL GROUP BY ALL ORDER BY ALL"
    )
    assert got == handed


def test_the_analyses_agree_with_the_rows(of_command: Run, open_session: Callable) -> None:
    """Percentiles by nearest rank; the time at all depths is the time of the recording."""
    session, name = open_session(of_command.folder), of_command.raw.name
    [read] = [
        row
        for row in session.run("block/latency").dicts()
        if (row["device"], row["op"], row["part"]) == (name, "read", "service")
    ]
    times = sorted(ns for (ns,) in of_command.rows("service_ns", f"device = '{name}' AND op = 'read'"))
    assert (read["requests"], read["sequential"], read["min_ns"], read["max_ns"]) == (
        len(times),
        0,
        times[0],
        times[-1],
    )
    for column, share in (("p50_ns", 0.5), ("p90_ns", 0.9), ("p99_ns", 0.99), ("p999_ns", 0.999)):
        assert read[column] == times[math.ceil(share * len(times)) - 1], column
    depths = [row for row in session.run("block/queue_depth").dicts() if row["device"] == name]
    assert sum(row["share"] for row in depths) == pytest.approx(1, abs=1e-3)
    [deep] = [row for row in depths if row["depth_from"] == of_command.together]
    assert deep["time_ns"] > 90_000_000
    steps = [row for row in session.run("block/requests_over_time").dicts() if row["device"] == name]
    written = sum(length for op, _, length in of_command.requests if op == "write")
    assert sum(row["write_bytes"] for row in steps) == written
