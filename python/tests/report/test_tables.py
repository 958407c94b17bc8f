"""Tables of pages: headings for people, one unit for a column, and the exact values for those who copy."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sysdock.library import Column
from sysdock.page.tables import table


def shown(column: Column, *values: Any) -> tuple[str, list[str], list[str]]:
    """The English heading of a column, its cells as they are read, and as they are copied."""
    html = table("t", [column], [(value,) for value in values], "a table")
    [head] = re.findall(r"<th [^>]*>(.*?)</th>", html)
    heading = re.sub(r'<span class="t" lang="ja">.*?</span>|<[^>]*>', "", head)
    cells = re.findall(r'<td class="n"(?: data-v="(.*?)")?>(.*?)</td>', html)
    return heading, [words for _, words in cells], [exact or words for exact, words in cells]


@pytest.mark.parametrize(
    ("name", "unit", "heading"),
    [
        ("avg_ns", "ns", "Average [ms]"),
        ("cpu_ns", "ns", "CPU [ms]"),
        ("p50_ns", "ns", "p50 [ms]"),
        ("read_bytes", "B", "Read bytes [MiB]"),
        ("calls", None, "Calls"),
        ("share", "ratio", "Share [ratio]"),
    ],
)
def test_headings_are_words_and_have_the_unit(name: str, unit: str | None, heading: str) -> None:
    assert shown(Column(name, "BIGINT", unit, "A column."), 5_000_000)[0] == heading


def test_a_column_has_the_unit_of_its_largest_value() -> None:
    times = Column("time_ns", "BIGINT", "ns", "Time.")
    heading, read, copied = shown(times, 480, 10_550, 21_330_000, None, 0)
    assert heading == "Time [ms]"
    assert read == ["0.000480", "0.0106", "21.33", "", "0"]
    assert copied == ["480", "10550", "21330000", "", "0"]


def test_small_sizes_are_exact() -> None:
    heading, read, _ = shown(Column("size_bytes", "BIGINT", "B", "Size."), 17, 1000)
    assert (heading, read) == ("Size bytes [B]", ["17", "1,000"])


def test_columns_without_a_value_and_with_odd_ones() -> None:
    times = Column("time_ns", "DOUBLE", "ns", "Time.")
    assert shown(times, None) == ("Time [ns]", [""], [""])
    heading, read, _ = shown(times, float("inf"), float("nan"), -3e9)
    assert (heading, read) == ("Time [s]", ["inf", "nan", "-3.00"])
