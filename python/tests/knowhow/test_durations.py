"""Distributions of durations, against a slow count over the calls."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from make_recording import RecordingMaker
from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Recording

Rows = list[dict[str, Any]]
Run = Callable[[str, Rows], Rows]


@pytest.fixture
def run(library: Library, maker: RecordingMaker) -> Run:
    """Runs an analysis on a recording of these calls; rows as dicts."""

    def ran(id_: str, calls: Rows) -> Rows:
        with Session(Recording.open(maker.make(calls)), library) as session:
            result = session.run(id_)
            names = [column.name for column in result.columns]
            return [dict(zip(names, row, strict=True)) for row in result.rows()]

    return ran


def some_calls(seed: int = 3) -> Rows:
    """Calls of all parts, most of them fast, some slow, and some without a duration."""
    chance = random.Random(seed)
    kinds: list[dict[str, Any]] = [
        {"call": "read", "path": "/a"},
        {"call": "write", "path": "/a"},
        {"call": "fsync", "class": "sync", "path": "/a"},
        {"call": "openat", "path": "/b"},
        {"call": "futex", "class": "lock"},
        {"call": "wait4", "class": "process"},
        {"call": "read", "path": "pipe:[5]", "kind": "pipe"},
        {"call": "aio_pread", "class": "read", "path": "/a", "via": "libaio"},
    ]
    calls = []
    for number in range(700):
        length = chance.choice([0, 1, 2, chance.randrange(3, 20), round(10 ** chance.uniform(2, 9))])
        calls.append({**chance.choice(kinds), "t": number * 0.001, "dur_ns": length})
    return [*calls, {"call": "read", "path": "/a", "t": 1.0}, {"call": "exit_group", "t": 1.1}]


def part(call: dict[str, Any]) -> str:
    """The column in which a call is counted."""
    if call["call"] in ("futex", "wait4") or call.get("kind") == "pipe":
        return "wait"
    return {"read": "read", "write": "write", "fsync": "write"}.get(call["call"], "other")


def test_classes_of_duration_hold_the_calls_of_their_length(run: Run) -> None:
    calls = some_calls()
    timed = [call for call in calls if "dur_ns" in call and "via" not in call]
    rows = run("io/duration_histogram", calls)
    assert sum(row[f"{name}_calls"] for row in rows for name in ("read", "write", "other", "wait")) == len(
        timed
    )
    for row in rows:
        low, high = row["from_ns"], row["to_ns"]
        assert (low, high) in [(0, 0), (1, 1)] or (high.bit_count() == 1 and low == high // 2 + 1)
        for name in ("read", "write", "other", "wait"):
            inside = [
                call["dur_ns"] for call in timed if part(call) == name and low <= call["dur_ns"] <= high
            ]
            assert (row[f"{name}_calls"], row[f"{name}_ns"]) == (len(inside), sum(inside))
    busy = [call["dur_ns"] for call in timed if part(call) != "wait"]
    for row in rows:
        slower = [length for length in busy if length >= row["from_ns"]]
        assert row["share_calls"] == pytest.approx(100 * len(slower) / len(busy), abs=1e-4)
        assert row["share_time"] == pytest.approx(100 * sum(slower) / sum(busy), abs=1e-4)


def test_classes_are_exact_at_every_power_of_two(run: Run) -> None:
    lengths = sorted({(1 << power) + near for power in range(50) for near in (-1, 0, 1)})
    rows = run(
        "io/duration_histogram", [{"call": "read", "path": "/a", "dur_ns": length} for length in lengths]
    )
    assert [row["read_calls"] for row in rows] == [
        sum(row["from_ns"] <= length <= row["to_ns"] for length in lengths) for row in rows
    ]
    assert sum(row["read_calls"] for row in rows) == len(lengths)


def test_without_durations_or_with_nothing_but_waiting_there_is_no_share(run: Run) -> None:
    [row] = run("io/duration_histogram", [{"call": "futex", "class": "lock", "dur_ns": 5}, {"call": "read"}])
    assert (row["wait_calls"], row["share_calls"], row["share_time"]) == (1, None, None)


def test_percentiles_are_durations_that_occurred(run: Run) -> None:
    calls = some_calls(5) * 2
    rows = run("io/durations", calls)
    names = {call["call"] for call in calls if "dur_ns" in call}
    assert {row["call"] for row in rows} == names
    assert [row["time_ns"] for row in rows] == sorted((row["time_ns"] for row in rows), reverse=True)
    for row in rows:
        lengths = sorted(call["dur_ns"] for call in calls if call["call"] == row["call"] and "dur_ns" in call)
        assert (row["calls"], row["time_ns"]) == (len(lengths), sum(lengths))
        for percent in (25, 50, 75, 90, 99):
            # The nearest rank: the first that so many do not exceed.
            [rank] = [
                n for n in range(1, len(lengths) + 1) if 100 * (n - 1) < percent * len(lengths) <= 100 * n
            ]
            assert row[f"p{percent}_ns"] == lengths[rank - 1]
        assert (row["min_ns"], row["max_ns"]) == (lengths[0], lengths[-1])
        beyond = sum(length for length in lengths if length > row["p99_ns"])
        assert row["slowest_share"] == pytest.approx(100 * beyond / sum(lengths), abs=0.006)


def test_one_slow_call_in_a_thousand_shows_in_the_share_alone(run: Run) -> None:
    fast = [{"call": "read", "path": "/a", "dur_ns": 1000} for _ in range(999)]
    [row] = run("io/durations", [*fast, {"call": "read", "path": "/a", "dur_ns": 999_000 * 3}])
    assert (row["p50_ns"], row["p99_ns"], row["max_ns"], row["slowest_share"]) == (1000, 1000, 2_997_000, 75)
