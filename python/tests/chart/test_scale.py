"""Units on axes and labels next to bars."""

from __future__ import annotations

import pytest
from sysdock.chart.scale import axis_of, labels, shorten


@pytest.mark.parametrize(
    ("unit", "largest", "title", "divisor"),
    [
        ("ns", 2.5e9, "Time [s]", 1e9),
        ("ns", 2.5e6, "Time [ms]", 1e6),
        ("ns", 999, "Time [ns]", 1),
        ("B", 3 * 2**30, "Time [GiB]", 2**30),
        ("B", 1023, "Time [B]", 1),
        ("B/s", 3 * 2**30, "Time [GiB/s]", 2**30),
        ("s", 2.5, "Time [s]", 1),
        ("s", 0.0025, "Time [ms]", 1e-3),
        ("s", 2.5e-6, "Time [µs]", 1e-6),
        ("s", 0, "Time [s]", 1),
        ("%", 50, "Time [%]", 1),
        (None, 50, "Time", 1),
    ],
)
def test_the_largest_value_decides_the_unit(unit: str, largest: float, title: str, divisor: float) -> None:
    axis = axis_of("Time", unit, (0, largest))
    assert (axis.title, axis.divisor) == (title, divisor)
    assert axis.scale == {"type": "linear", "zero": True}


def test_a_log_axis_keeps_the_unit_and_says_that_it_is_one() -> None:
    axis = axis_of("Size", "B", (1, 2**20), "log")
    assert axis.divisor == 1
    assert axis.title == "Size (log scale)"
    assert all(value & (value - 1) == 0 for value in map(int, axis.axis["values"]))


def test_a_long_path_keeps_its_end() -> None:
    label = shorten("/very/long/way/through/many/folders/to/the/file-that-matters.txt", 30)
    assert label.endswith("matters.txt")
    assert "…" in label
    assert len(label) <= 30


def test_wide_characters_count_double() -> None:
    assert shorten("日本語" * 5, 30) == "日本語" * 5
    assert len(shorten("日本語" * 20, 30)) <= 16


def test_labels_are_all_different() -> None:
    names = [f"/a/{'x' * 60}{number}/same/ending/of/the/path.txt" for number in range(3)]
    assert len(set(labels(names, 30))) == 3


def test_control_characters_do_not_reach_the_axis() -> None:
    assert shorten("a\nb\x1b[31m\u202ec", 30) == "a·b·[31m·c"
