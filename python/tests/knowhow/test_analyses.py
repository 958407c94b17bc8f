"""Analyses at the edges that the examples in their pages do not show."""

from __future__ import annotations

from typing import Any

import pytest
from make_recording import STARTED_NS, RecordingMaker
from sysdock.analysis import Session
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.recording import Filters, Recording


@pytest.fixture
def run(library: Library, maker: RecordingMaker):
    """Runs an analysis on a recording of these calls; rows as dicts."""

    def ran(id_: str, calls: list[dict[str, Any]], params=None, filters=None, **extra: Any) -> list[dict]:
        with Session(Recording.open(maker.make(calls, **extra)), library, filters) as session:
            result = session.run(id_, params)
            names = [column.name for column in result.columns]
            return [dict(zip(names, row, strict=True)) for row in result.rows()]

    return ran


def reads(sizes: list[int], **more: Any) -> list[dict[str, Any]]:
    """One read per size."""
    return [{"call": "read", "path": "/a", "moved_bytes": n, "result": n, **more} for n in sizes]


def test_classes_are_exact_at_every_power_of_two(run) -> None:
    sizes = sorted({(1 << power) + near for power in range(61) for near in (-1, 0, 1)})
    rows = run("io/size_histogram", reads(sizes))
    assert sum(row["reads"] for row in rows) == len(sizes)
    for row in rows:
        low, high = row["size_from"], row["size_to"]
        inside = [size for size in sizes if low <= size <= high]
        assert row["reads"] == len(inside)
        assert row["read_bytes"] == sum(inside)
        assert (low, high) in [(0, 0), (1, 1)] or (high.bit_count() == 1 and low == high // 2 + 1)


def test_without_durations_times_are_unknown_and_the_rest_is_there(run) -> None:
    [row] = run("io/summary", reads([1, 2]))
    assert (row["calls"], row["ok"], row["bytes"]) == (2, 2, 3)
    assert row["time_ns"] is row["avg_ns"] is row["min_ns"] is row["max_ns"] is None


def test_a_call_that_never_returned_is_neither_ok_nor_an_error(run) -> None:
    [row] = run("io/summary", [{"call": "read", "path": "/a", "result": None}])
    assert (row["calls"], row["ok"], row["errors"]) == (1, 0, 0)


def test_files_for_one_call_together(run) -> None:
    calls = [*reads([4, 6], dur_ns=10), {"call": "close", "path": "/a", "dur_ns": 5}, {"call": "getpid"}]
    [read] = run("io/files", calls, {"call": "read"})
    assert (read["path"], read["call"], read["calls"], read["bytes"]) == ("/a", "read", 2, 10)


def test_files_together(run) -> None:
    calls = [*reads([4, 6], dur_ns=10), {"call": "close", "path": "/a", "dur_ns": 5}]
    [every] = run("io/files", calls, {"per_call": False})
    assert (every["call"], every["calls"], every["time_ns"]) == ("all", 3, 25)


@pytest.mark.parametrize(
    ("interval", "steps"), [(1.0, [0.0, 2.0]), (0.25, [0.0, 0.25, 2.0]), (0.1, [0.0, 0.2, 0.3, 2.0])]
)
def test_steps_of_any_length_leave_gaps_out(run, interval: float, steps: list[float]) -> None:
    calls = [{"t": t, **call} for t, call in zip((0, 0.2, 0.3, 2.0), reads([1, 1, 1, 1]), strict=True)]
    rows = run("io/calls_over_time", calls, {"interval_s": interval})
    assert [row["from_s"] for row in rows] == steps
    assert sum(row["calls"] for row in rows) == 4


@pytest.mark.parametrize("analysis", ["io/bytes_over_time", "io/calls_over_time"])
def test_steps_may_be_tiny_or_huge_but_not_nothing(run, analysis: str) -> None:
    for number, interval_s in enumerate((1e-300, 1e300)):
        assert len(run(analysis, reads([5]), {"interval_s": interval_s}, name=f"rec{number}")) == 1
    for number, interval_s in enumerate((0, -1), 2):
        with pytest.raises(UserError, match="must be greater than 0"):
            run(analysis, reads([5]), {"interval_s": interval_s}, name=f"rec{number}")


def test_a_thread_id_that_is_used_again_is_another_life(run) -> None:
    life = {"pid": 7, "tid": 7, "depth": 0, "execs": 0, "calls": 1}
    lives = [
        {**life, "tree_order": 0, "start_ts_ns": STARTED_NS, "end_ts_ns": STARTED_NS + 1_000_000_000},
        {**life, "tree_order": 1, "start_ts_ns": STARTED_NS + 5_000_000_000, "exit_signal": "SIGKILL"},
    ]
    calls = [
        {"t": 0.5, "call": "write", "pid": 7, "tid": 7, "moved_bytes": 10, "result": 10},
        {"t": 5.5, "call": "write", "pid": 7, "tid": 7, "moved_bytes": 3, "result": 3},
    ]
    first, second = run("processes/tree", calls, processes=lives)
    assert (first["bytes"], second["bytes"]) == (10, 3)
    assert (first["exit"], second["exit"], second["end_s"]) == (None, "SIGKILL", None)


def test_a_filter_reaches_every_analysis_of_calls(run, library: Library) -> None:
    calls = reads([4], path="/keep") + reads([400], path="/drop")
    for id_ in ("io/summary", "io/sizes", "io/size_histogram", "io/calls_over_time", "io/bytes_over_time"):
        rows = run(id_, calls, filters=Filters(file="/keep"), name=id_.replace("/", "-"))
        assert sum(row.get("calls", row.get("reads")) for row in rows) == 1
