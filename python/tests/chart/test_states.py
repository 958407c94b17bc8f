"""Time lines of threads: in each step the state that took most of it, by a second and slower count."""

from __future__ import annotations

import random
from collections import defaultdict
from itertools import groupby, pairwise
from typing import Any

import pytest
from make_recording import RecordingMaker
from sysdock import chart
from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Recording

TICK = 100_000
CAUSES = ("disk", "kernel lock", "pipe", "timer")


def lives(chance: random.Random, threads: int, ticks: int) -> dict[int, list[str]]:
    """What each thread does in each tick of 0.1 ms; all begin and end with a state that has a row."""
    found = {}
    for tid in range(1, threads + 1):
        states: list[str] = ["CPU"]
        while len(states) < ticks - 1:
            states += [chance.choice(["running", "CPU", *CAUSES])] * chance.choice([1, 2, 5, 40])
        found[tid] = [*states[: ticks - 1], "CPU"]
    return found


def recorded(maker: RecordingMaker, states: dict[int, list[str]], name: str = "rec") -> Recording:
    """A recording of them; the path changes the thread every 50 ticks."""
    rows = []
    for tid, ticks in states.items():
        at = 0
        for state, group in groupby(ticks):
            length = len(list(group))
            if state != "running":
                wait = 0 if state == "CPU" else length * TICK
                cause = {} if state == "CPU" else {"cause": state}
                row = {"t": at * TICK / 1e9, "dur_ns": length * TICK, "wait_ns": wait, "pid": 1, "tid": tid}
                rows.append({**row, **cause, "state": "sleeping", "cpu": 0})
            at += length
    length = len(next(iter(states.values())))
    path = [
        {"t": at * TICK / 1e9, "dur_ns": 50 * TICK, "part": "running", "pid": 1, "tid": on_path(at, states)}
        for at in range(0, length, 50)
    ]
    return Recording.open(maker.make([], name, run_states=rows, critical_path=path))


def on_path(tick: int, states: dict[int, list[str]]) -> int:
    """The thread of the critical path."""
    return tick // 50 % len(states) + 1


def counted(states: dict[int, list[str]], columns: int) -> dict[tuple[int, int], dict[str, int]]:
    """Time [ns] of each state by thread and step."""
    length = len(next(iter(states.values())))
    width = -(-length * TICK // columns)
    found: dict[tuple[int, int], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for tid, ticks in states.items():
        for number, state in enumerate(ticks):
            # Steps need not end where ticks do.
            for at in range(number * TICK, (number + 1) * TICK, TICK // 10):
                found[tid, at // width][state] += TICK // 10
    return found


@pytest.fixture
def states() -> dict[int, list[str]]:
    """Three threads over 600 ticks."""
    return lives(random.Random(5), 3, 600)


def test_each_step_adds_up_to_its_states(
    library: Library, maker: RecordingMaker, states: dict[int, list[str]]
) -> None:
    # Steps of 0.75 ms: ends of ticks are within them.
    with Session(recorded(maker, states), library) as session:
        rows = session.run("sched/timeline", {"columns": 80}).dicts()
    found: dict[tuple[int, int], dict[str, int]] = defaultdict(dict)
    for row in rows:
        tid, step = int(row["thread"].split()[-1]), round(row["from_s"] / 0.00075)
        found[tid, step][row["state"]] = row["time_ns"]
        inside = range(step * 75, step * 75 + 75)
        assert row["path_ns"] == sum(on_path(at // 10, states) == tid for at in inside) * TICK // 10
    assert found == counted(states, 80)


def test_a_rectangle_is_the_longest_state_of_its_steps(
    library: Library, maker: RecordingMaker, states: dict[int, list[str]]
) -> None:
    with Session(recorded(maker, states), library) as session:
        [spec] = chart.specs(session, "sched/timeline", {"columns": 600})
    rows = spec["data"]["values"]
    # The axis is in milliseconds; 600 steps are drawn as 300.
    assert {(row["detail"], row["onpath"]) for row in rows} == {(d, p) for d in (0, 1) for p in (False, True)}
    for detail, columns in ((0, 300), (1, 600)):
        expected = counted(states, columns)
        width = 60 / columns
        drawn: dict[tuple[int, int], str] = {}
        for row in rows:
            if row["detail"] == detail and not row["onpath"]:
                for step in range(round(row["from_s"] / width), round(row["until_s"] / width)):
                    tid = int(row["name"].split()[-1])
                    assert (tid, step) not in drawn
                    drawn[tid, step] = row["state"]
        longest = {key: min(by, key=lambda state: (-by[state], state)) for key, by in expected.items()}
        words = {"CPU": "waits for a CPU"}
        assert drawn == {key: words.get(state, state) for key, state in longest.items()}


def test_neighbours_of_one_state_are_one_rectangle(
    library: Library, maker: RecordingMaker, states: dict[int, list[str]]
) -> None:
    with Session(recorded(maker, states), library) as session:
        [spec] = chart.specs(session, "sched/timeline")
    key: Any = lambda row: (row["detail"], row["place"], row["onpath"], row["from_s"])  # noqa: E731
    for one, other in pairwise(sorted(spec["data"]["values"], key=key)):
        if key(one)[:3] == key(other)[:3] and one["until_s"] == other["from_s"]:
            assert one["state"] != other["state"]


def test_only_so_many_threads_and_rectangles(library: Library, maker: RecordingMaker) -> None:
    busy = lives(random.Random(6), 60, 4000)
    with Session(recorded(maker, busy), library) as session:
        [spec] = chart.specs(session, "sched/timeline")
    assert len(spec["data"]["values"]) <= 5000
    assert len({row["name"] for row in spec["data"]["values"]}) == 40
    assert spec["title"]["subtitle"].startswith("40 of 60 threads drawn, of each ")
    for detail in (0, 1):
        assert len({row["name"] for row in spec["data"]["values"] if row["detail"] == detail}) == 40


def test_states_have_japanese_names(library: Library, maker: RecordingMaker) -> None:
    with Session(Recording.open(maker.make_waits()), library) as session:
        [spec] = chart.specs(session, "sched/timeline", lang="ja")
    rows = spec["data"]["values"]
    assert {row["state"] for row in rows} == {"ディスク", "CPU 待ち", "実行中", "クリティカルパス"}
    assert "クリティカルパス" in spec["title"]["subtitle"]
