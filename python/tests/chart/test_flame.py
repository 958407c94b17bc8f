"""Flame graphs: a rectangle is as wide as what was called from it, and no time is left out."""

from __future__ import annotations

import io
import json
import random
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from make_recording import RecordingMaker
from sysdock import chart
from sysdock.analysis import Session
from sysdock.chart.flame import KERNEL, OTHER, PROCESS, PROGRAM, PYTHON, SEEN, WAIT, parts_of
from sysdock.export import WRITERS
from sysdock.library import Library
from sysdock.recording import Recording

STACKS = """-- Stacks
-- For tests.
-- needs:  recording
-- column: stack VARCHAR     Stack.
-- column: time_ns BIGINT    Time [ns].
-- column: hits BIGINT       Number.
-- chart:  flame x=stack y=time_ns,hits title="Time" title_ja="時間"
-- portable: false
SELECT stack, time_ns, CAST(hits AS BIGINT) AS hits FROM (VALUES ROWS) AS t(stack, time_ns, hits)
"""
Opener = Callable[..., Session]
Rows = list[dict[str, Any]]


def of_stacks(rows: list[tuple[str, int, int]]) -> str:
    """The analysis above with these rows."""
    values = ", ".join(
        "('" + stack.replace("'", "''") + f"', CAST({time} AS BIGINT), {hits})" for stack, time, hits in rows
    )
    return STACKS.replace("ROWS", values)


def some_stacks(number: int) -> list[tuple[str, int, int]]:
    """Stacks that share their beginnings, some of them a part of others."""
    chance = random.Random(17)
    found = {}
    for _ in range(number):
        names = [f"f{chance.randrange(3)} (lib)" for _ in range(chance.randrange(1, 9))]
        hits = chance.randrange(1, 40)
        found[";".join(["prog", *names])] = (hits * 5_000_000, hits)
    return [(stack, time, hits) for stack, (time, hits) in found.items()]


def chains(rows: Rows) -> dict[str, dict[str, Any]]:
    """The rectangles by all names from the top to them."""
    found: dict[int, str] = {}
    for row in rows:
        above = found.get(row["parent"])
        found[row["id"]] = row["name"] if above is None else f"{above};{row['name']}"
    return {found[row["id"]]: row for row in rows}


def test_widths_are_the_sums_of_all_stacks_that_begin_so(open_session: Opener) -> None:
    given = some_stacks(300)
    sums: dict[str, int] = defaultdict(int)
    numbers: dict[str, int] = defaultdict(int)
    for stack, time, hits in given:
        parts = ["all", *stack.split(";")]
        for level in range(1, len(parts) + 1):
            sums[";".join(parts[:level])] += time
            numbers[";".join(parts[:level])] += hits
    [spec] = chart.specs(open_session(t=of_stacks(given)), "t/t")
    found = chains(spec["data"]["values"])
    whole = sums["all"]
    # The axis is in seconds.
    assert {name: row["to"] - row["from"] for name, row in found.items()} == {
        name: pytest.approx(time / 1e9, abs=1e-6) for name, time in sums.items()
    }
    assert {name: int(row["number"].replace(",", "")) for name, row in found.items()} == numbers
    own = {f"all;{stack}": time for stack, time, _ in given}
    for name, row in found.items():
        assert float(row["own"].split("(")[1].split()[0]) == pytest.approx(
            100 * own.get(name, 0) / whole, abs=0.101
        )
    assert spec["title"]["subtitle"] == f"{len(sums):,} of {len(sums):,} rectangles drawn"


def test_a_second_time_is_a_difference_that_colours_what_lies_above(open_session: Opener) -> None:
    sql = of_stacks([("prog;main;same", 60, 0), ("prog;main;more", 30, 20), ("prog;main;less", 10, -5)])
    sql = sql.replace("hits BIGINT       Number.", "hits BIGINT       Difference [ns].")
    sql = sql.replace("chart:  flame ", "chart:  flame_difference ")
    [spec] = chart.specs(open_session(t=sql), "t/t")
    found = chains(spec["data"]["values"])
    shifts = {name.rsplit(";", 1)[-1]: row["shift"] for name, row in found.items()}
    assert shifts == {"all": 0.15, "prog": 0.15, "main": 0.15, "same": 0, "more": 0.2, "less": -0.05}
    assert found["all;prog;main;less"]["number"] == "-5 ns (-5.0 %)"
    assert spec["layer"][0]["encoding"]["color"]["scale"]["domain"] == [-0.2, 0.0, 0.2]


def test_rectangles_lie_in_their_parents_and_never_overlap(open_session: Opener) -> None:
    [spec] = chart.specs(open_session(t=of_stacks(some_stacks(300))), "t/t")
    rows = spec["data"]["values"]
    by_level: dict[int, Rows] = defaultdict(list)
    assert [row["id"] for row in rows] == list(range(len(rows)))
    for row in rows:
        by_level[row["place"]].append(row)
        parent = rows[row["parent"]]
        assert row["id"] == 0 or (parent["from"] <= row["from"] and row["to"] <= parent["to"] + 1e-6)
    for level in by_level.values():
        level.sort(key=lambda row: row["from"])
        assert all(row["to"] <= following["from"] + 1e-6 for row, following in pairwise(level))


def test_what_is_too_narrow_is_one_rectangle_of_its_parent(open_session: Opener) -> None:
    many = [(f"prog;main;f{n:05}", 1_000_000 if n else 10**10, 1) for n in range(9000)]
    session = open_session(t=of_stacks(many))
    [spec] = chart.specs(session, "t/t")
    rows = spec["data"]["values"]
    assert len(rows) <= 5000
    [other] = [row for row in rows if row["name"].startswith("(other")]
    shown = [row for row in rows if row["place"] == 3 and row is not other]
    assert other["name"] == f"(other: {9000 - len(shown):,})"
    # All of main's time is below it.
    assert sum(row["to"] - row["from"] for row in [*shown, other]) == pytest.approx(18.999, abs=1e-4)
    share = 100 * (other["to"] - other["from"]) / 18.999
    assert f"the others, {share:.1f} % together, are `(other)`" in spec["title"]["subtitle"]
    assert chart.specs(session, "t/t") == [spec]


def test_deep_stacks_are_seen_in_parts(open_session: Opener) -> None:
    deep = ";".join(["prog", *(f"f{n}" for n in range(90))])
    [spec] = chart.specs(open_session(t=of_stacks([(deep, 5, 1)])), "t/t")
    assert len(spec["data"]["values"]) == 92
    assert len(spec["encoding"]["y"]["scale"]["domain"]) == SEEN
    assert spec["title"]["subtitle"].endswith(f"{SEEN} of 92 levels at a time")


@pytest.mark.parametrize(
    ("part", "level", "found"),
    [
        ("gcc", 1, ("gcc", "", PROCESS)),
        ("main (gcc)", 2, ("main", "gcc", PROGRAM)),
        ("f(int) const (libx.so)", 2, ("f(int) const", "libx.so", PROGRAM)),
        ("vfs_read [kernel]", 2, ("vfs_read", "kernel", KERNEL)),
        ("operator[] (a.out)", 2, ("operator[]", "a.out", PROGRAM)),
        ("<module> (Python app/run.py)", 2, ("<module>", "app/run.py", PYTHON)),
        ("read()", 3, ("read()", "", KERNEL)),
        ("waiting: kernel lock", 3, ("waiting: kernel lock", "", WAIT)),
        ("(no stack)", 2, ("(no stack)", "", OTHER)),
        ("[the stack ends]", 2, ("[the stack ends]", "", OTHER)),
    ],
)
def test_parts_of_stacks_say_what_they_are(part: str, level: int, found: tuple[str, str, str]) -> None:
    assert parts_of(part, level) == found


def test_hostile_names_are_data(open_session: Opener) -> None:
    evil = "</script>\"');alert(1)//\u202e${1}\n"
    [spec] = chart.specs(open_session(t=of_stacks([(f"p;{evil} (x);;", 5, 1), ("", 3, 1)])), "t/t")
    assert "alert" not in json.dumps({key: value for key, value in spec.items() if key != "data"})
    assert any("alert" in row["name"] for row in spec["data"]["values"])
    assert not any("\u202e" in row["name"] for row in spec["data"]["values"])


def test_nothing_to_draw(open_session: Opener) -> None:
    [spec] = chart.specs(open_session(t=of_stacks([("a;b", 0, 1)])), "t/t")
    assert (spec["data"]["values"], spec["title"]["subtitle"]) == ([], "no data")


@pytest.mark.parametrize(
    ("analysis", "of"), [("cpu/flame_graph", "cpu"), ("time/off_cpu_flame_graph", "waits")]
)
def test_top_levels_agree_with_the_export(
    analysis: str, of: str, library: Library, maker: RecordingMaker
) -> None:
    with Session(Recording.open(maker.make_waits()), library) as session:
        out = io.BytesIO()
        WRITERS["collapsed"](session, out, 1000, of=of)
        [spec] = chart.specs(session, analysis)
        rows = session.run(analysis).dicts()
    lines = [line.rpartition(" ") for line in out.getvalue().decode().splitlines()]
    functions: dict[str, int] = defaultdict(int)
    for stack, _, weight in lines:
        # Without the kernel's mark, and of waits without what stands behind the cause.
        for name in {name.removesuffix("_[k]") for name in stack.split(";")}:
            functions[name] += int(weight)
    assert sum(row["time_ns"] for row in rows) == sum(int(weight) for _, _, weight in lines)
    widths: dict[str, float] = defaultdict(float)
    for row in spec["data"]["values"][1:]:
        widths[row["function"].removesuffix("()").replace("waiting: CPU", "waiting for a CPU")] += (
            row["to"] - row["from"]
        )
    scale = sum(row["time_ns"] for row in rows) / spec["data"]["values"][0]["to"]
    for name, width in widths.items():
        if name != "(no stack)":
            assert width * scale == pytest.approx(functions[name], rel=1e-6), name


def test_wake_ups_stand_below_who_woke(library: Library, maker: RecordingMaker) -> None:
    ms = 1_000_000
    state = {"state": "sleeping", "call": "read", "class": "read"}
    given = [
        ("interrupt", "disk", 30),
        ("interrupt", "timer", 5),
        ("kworker/0:1", "disk", 7),
        (None, "pipe", 2),
    ]
    states = [
        {
            "t": n / 10,
            "dur_ns": (wait + 1) * ms,
            "wait_ns": wait * ms,
            "cause": cause,
            "waker": waker,
            **state,
        }
        for n, (waker, cause, wait) in enumerate(given)
    ]
    with Session(Recording.open(maker.make(run_states=states)), library) as session:
        [spec] = chart.specs(session, "sched/wakeup_flame_graph")
    rows = spec["data"]["values"]
    assert {(row["name"], row["text"].split(" (")[0]) for row in rows if row["place"] == 1} == {
        ("interrupt woke", "35.00 ms"),
        ("kworker/0:1 woke", "7.00 ms"),
        ("(no waker)", "2.00 ms"),
    }
    assert {row["series"] for row in rows if row["place"] in (1, 2)} == {PROCESS, OTHER}
