"""Charts of classes that double: bars stand where their ends are, and the axis says so."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from make_recording import RecordingMaker
from sysdock import chart
from sysdock.analysis import Session
from sysdock.chart.scale import class_axis
from sysdock.library import Library
from sysdock.recording import Recording

LENGTHS = [0, 900, 1000, 1100, 40_000, 3_000_000, 2_500_000_000]


def ticks(axis: dict[str, Any]) -> dict[float, str]:
    """Labels by place, as the expression gives them: its branches are in order of place."""
    branches = [
        (float(end), label)
        for end, label in re.findall(r"datum.value < (\S+) \? '([^']*)'", axis["labelExpr"])
    ]
    return {value: next(label for end, label in branches if value < end) for value in axis["values"]}


@pytest.fixture
def specs(library: Library, maker: RecordingMaker) -> list[dict[str, Any]]:
    """The charts of the duration histogram over reads of these lengths."""
    calls = [{"call": "read", "path": "/a", "dur_ns": length} for length in LENGTHS]
    with Session(Recording.open(maker.make(calls)), library) as session:
        return chart.specs(session, "io/duration_histogram")


def test_bars_of_time_stand_between_the_ends_of_their_class(specs: list[dict[str, Any]]) -> None:
    counts, times, _ = specs
    rows = [row for row in counts["data"]["values"] if row["series"] == "read calls"]
    assert sum(row["value"] for row in rows) == len(LENGTHS)
    for length in LENGTHS:
        place = -1.5 if not length else math.ceil(math.log2(length)) - 0.5
        [row] = [row for row in rows if place - 0.5 <= row["from"] < row["to"] <= place + 0.5]
        assert row["value"] == sum(
            (math.ceil(math.log2(other)) - 0.5 if other else -1.5) == place for other in LENGTHS
        )
    assert counts["encoding"]["x"]["title"] == "Longest duration in the class (log scale)"
    assert times["encoding"]["y"]["title"] == "Time, without waits [s]"
    assert counts["encoding"]["y"]["scale"]["zero"] is True
    assert "513 ns - 1.02 µs" in {row["name"] for row in rows}


def test_labels_of_times_stand_at_powers_of_ten(specs: list[dict[str, Any]]) -> None:
    labels = ticks(specs[0]["encoding"]["x"]["axis"])
    assert labels.pop(-1.5) == "0"
    units = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}
    for place, label in labels.items():
        number, unit = label.split()
        assert 2**place == pytest.approx(float(number) * units[unit], rel=1e-3)
    assert "1 µs" in labels.values()
    assert "1 s" in labels.values()


def test_labels_of_sizes_are_powers_of_two() -> None:
    labels = ticks(class_axis("B", -1.4, 62.4))
    assert [labels[place] for place in (-1, 0, 9, 10, 19, 20, 30, 40, 62)] == [
        "0", "1", "512", "1 Ki", "512 Ki", "1 Mi", "1 Gi", "1 Ti", "4 Ei",
    ]  # fmt: skip


def test_the_curve_counts_what_its_log_axis_cannot_show(specs: list[dict[str, Any]]) -> None:
    curve = specs[2]
    assert "2 of value 0 cannot stand on a log scale" in curve["title"]["subtitle"]
    assert curve["encoding"]["y"]["title"].endswith("[%]")
    shares = [row["value"] for row in curve["data"]["values"] if row["series"] == "share calls"]
    assert shares == sorted(shares, reverse=True)
    assert max(row["value"] for row in curve["data"]["values"]) <= 100
