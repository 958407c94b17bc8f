"""Marks stand on every chart over time, at their moment, and are the same for all that is drawn there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from make_recording import RecordingMaker
from sysdock import chart
from sysdock.analysis import Session
from sysdock.chart.output import write
from sysdock.library import Library
from sysdock.recording import Filters, Recording
from sysdock.sentences import fact, json_of

SLOW = "fsync took 1.23 s"
SHAPES = {
    "lines": "io/calls_over_time",
    "spans": "processes/tree",
    "points": "io/offsets",
    "bars": "io/summary",
}


@pytest.fixture
def session(maker: RecordingMaker, library: Library) -> Session:
    calls: list[dict[str, Any]] = [
        {
            "t": 0.02 * number,
            "dur_ns": 1000,
            "call": "write",
            "path": "/data",
            "transferred_bytes": 10,
            "offset_bytes": 0,
        }
        for number in range(100)
    ]
    marks = [{"t": 0.5, "text": SLOW}, {"t": 1.5, "text": "<b>by hand</b>"}]
    return Session(Recording.open(maker.make(calls, marks=marks)), library)


def lines(spec: dict[str, Any]) -> list[dict[str, Any]]:
    found = [layer for layer in spec.get("layer", []) if layer["mark"]["type"] == "rule"]
    return [
        {**row, "at": row["moment"] * spec["usermeta"]["seconds_per_unit"]}
        for layer in found
        for row in layer["data"]["values"]
    ]


@pytest.mark.parametrize("analysis", SHAPES.values(), ids=SHAPES.keys())
def test_marks_are_lines_at_their_moment(session: Session, analysis: str, tmp_path: Path) -> None:
    over_time = []
    for spec in chart.specs(session, analysis):
        if "seconds_per_unit" in spec.get("usermeta", {}) and spec["data"]["values"]:
            over_time.append([(row["at"], row["shown"]) for row in lines(spec)])
            assert SLOW in spec["title"]["subtitle"]
        else:
            assert SLOW not in json.dumps(spec)
    at = [(pytest.approx(0.5), SLOW), (pytest.approx(1.5), "<b>by hand</b>")]
    assert all(found == at for found in over_time)
    assert bool(over_time) == (analysis != SHAPES["bars"])
    # Vega takes it: a layer of its own that shares nothing but the axis of time.
    write(session, analysis, None, tmp_path / "chart.svg")
    dashed = (tmp_path / "chart.svg").read_text().count('stroke-dasharray="5,3"')
    assert dashed == 2 * len(over_time)


def test_a_range_of_time_leaves_out_the_marks_outside(maker: RecordingMaker, library: Library) -> None:
    calls = [{"t": 0.02 * number, "dur_ns": 1000, "call": "write", "path": "/data"} for number in range(100)]
    folder = maker.make(calls, marks=[{"t": 0.5, "text": SLOW}, {"t": 1.5, "text": "late"}])
    with Session(Recording.open(folder), library, Filters(from_="1", to="2")) as session:
        [spec, *_] = chart.specs(session, "io/calls_over_time")
    assert [row["shown"] for row in lines(spec)] == ["late"]


def test_what_a_mark_states_is_said_in_the_language_of_the_chart(
    maker: RecordingMaker, library: Library
) -> None:
    calls = [{"t": 0.02 * number, "dur_ns": 1000, "call": "write", "path": "/data"} for number in range(100)]
    took = fact("marks/call_took", call="fsync", took=1_230_000_000)
    slow = json_of(fact("marks/in_thread", name="db", tid=7, what=took))
    with Session(Recording.open(maker.make(calls, marks=[{"t": 0.5, "text": slow}])), library) as session:
        for lang, said in (("en", "db[7]: fsync took 1.23 s"), ("ja", "db[7]: fsync に 1.23 s かかった")):
            [spec, *_] = chart.specs(session, "io/calls_over_time", lang=lang)
            assert [row["shown"] for row in lines(spec)] == [said]
            assert said in spec["title"]["subtitle"]
