"""Heat maps of latency: every count is a true one, by a second and slower count."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from make_recording import RecordingMaker
from sysdock import chart
from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Recording

ANALYSES = ("syscalls/latency_over_time", "block/latency_over_time", "sched/run_queue_wait_over_time")


def lengths(number: int) -> list[tuple[int, int]]:
    """Starts and lengths [ns], from 1 ns to seconds; at the ends of classes, too."""
    chance = random.Random(8)
    found = [(chance.randrange(9 * 10**9), round(10 ** chance.uniform(0, 9))) for _ in range(number)]
    edges = [(10**9 * (at % 9), 2**at + step) for at in range(1, 30) for step in (-1, 0, 1)]
    return [*found, *edges, (8, 3), (9, 1)]


def recorded(maker: RecordingMaker, times: list[tuple[int, int]]) -> Recording:
    """These as calls, as requests of a device and as waits for a CPU, which end at the starts."""
    calls = [{"t": at / 1e9, "call": "read", "path": "/a", "dur_ns": ns} for at, ns in times]
    calls.append({"t": 9.9, "call": "futex", "class": "lock", "dur_ns": 77})
    request = {"queue_ns": 5, "device": "sda", "op": "read", "length_bytes": 1, "flags": "", "depth": 1}
    requests = [{"t": at / 1e9, **request, "service_ns": ns} for at, ns in times]
    state = {"wait_ns": 0, "state": "preempted", "cpu": 0}
    waits = [{"t": (at - ns) / 1e9, **state, "dur_ns": ns} for at, ns in times]
    folder = maker.make(
        calls, block_requests=requests, run_states=waits, started_ns=1_700_000_000_000_000_000
    )
    return Recording.open(folder)


def class_of(ns: int) -> tuple[int, int]:
    """The class that holds it, by trying them from the first."""
    power = 1
    while ns >= 2 * power:
        power *= 2
    quarter = next(q for q in range(4) if 4 * ns < power * (5 + q))
    # Lengths are whole numbers.
    return -(-power * (4 + quarter) // 4), -(-power * (5 + quarter) // 4)


@pytest.mark.parametrize("analysis", ANALYSES)
def test_every_class_counts_what_lies_in_it(analysis: str, library: Library, maker: RecordingMaker) -> None:
    times = lengths(2000)
    with Session(recorded(maker, times), library) as session:
        rows = session.run(analysis).dicts()
        [spec] = chart.specs(session, analysis)
    number = list(rows[0])[-1]
    expected = Counter((at // 10**9, *class_of(ns)) for at, ns in times)
    assert {(row["from_s"], row["from_ns"], row["to_ns"]): row[number] for row in rows} == expected
    assert all(row["until_s"] == row["from_s"] + 1 for row in rows)
    drawn = spec["data"]["values"]
    assert {(row["from_s"], row["y"], row["y2"]): row["number"] for row in drawn} == expected
    assert spec["title"]["subtitle"].startswith(f"{len(times):,} of {len(times):,} values drawn")
    assert spec["usermeta"] == {"seconds_per_unit": 1}


def test_many_steps_are_added(library: Library, maker: RecordingMaker) -> None:
    times = lengths(20_000)
    with Session(recorded(maker, times), library) as session:
        [spec] = chart.specs(session, ANALYSES[0], {"interval_s": 0.001})
    rows = spec["data"]["values"]
    assert len(rows) <= 5000
    assert sum(row["number"] for row in rows) == len(times)
    width = rows[0]["until_s"] - rows[0]["from_s"]
    expected = Counter((at // round(width * 1e9), *class_of(ns)) for at, ns in times)
    assert {(round(row["from_s"] / width), row["y"], row["y2"]): row["number"] for row in rows} == expected


def test_nothing_to_draw(library: Library, maker: RecordingMaker) -> None:
    calls = [{"call": "read", "dur_ns": 0}]
    with Session(Recording.open(maker.make(calls)), library) as session:
        [spec] = chart.specs(session, ANALYSES[0])
    assert spec["data"]["values"] == []
    assert spec["encoding"]["y"]["scale"]["type"] == "log"
