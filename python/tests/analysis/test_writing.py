"""Tables for people."""

from __future__ import annotations

import io
import json

import pytest
from sysdock.analysis.writing import (
    human_bytes,
    human_ns,
    printable,
    shorten,
    table_lines,
    width,
    write_csv,
    write_json,
)
from sysdock.library import Column


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0, "0 ns"),
        (999, "999 ns"),
        (1_500, "1.50 µs"),
        (-1_500, "-1.50 µs"),
        (123_456_789, "123.5 ms"),
        (3_600_000_000_000, "3,600.0 s"),
        (float("nan"), "nan"),
    ],
)
def test_times(value: float | None, text: str) -> None:
    assert human_ns(value) == text


def test_sizes() -> None:
    assert [human_bytes(value) for value in (0, 1023, 1536, 5 << 30)] == [
        "0 B",
        "1,023 B",
        "1.50 KiB",
        "5.00 GiB",
    ]


def test_a_name_cannot_steer_the_terminal() -> None:
    assert printable("a\x1b[31m\nb\u202e") == "a\\x1b[31m\\nb\\u202e"
    assert printable("日本語 é") == "日本語 é"


def test_width_of_japanese() -> None:
    assert width("日本") == 4
    assert shorten("日本語の名前", 7) == "日本語…"
    assert shorten("/usr/share/doc/readme", 11, middle=True) == "/usr/…eadme"
    assert shorten("short", 5) == "short"


COLUMNS = [
    Column("path", "VARCHAR", None, ""),
    Column("time_ns", "BIGINT", "ns", ""),
    Column("from_s", "DOUBLE", "s", ""),
    Column("calls", "BIGINT", None, ""),
    Column("pid", "INTEGER", None, ""),
]


def test_a_table() -> None:
    rows = [("/日", 1500, 0.25, 12345, 12345), (None, None, None, None, None)]
    assert table_lines(COLUMNS, rows) == [
        "path     time  from [s]   calls    pid",
        "/日   1.50 µs      0.25  12,345  12345",
        "-           -         -       -      -",
    ]


def test_a_table_fits_the_terminal() -> None:
    lines = table_lines(COLUMNS, [("/" + "x" * 300, 1, 1.0, 1, 1)], 80)
    assert [len(line) for line in lines] == [80, 80]


def test_json_and_csv_of_odd_values() -> None:
    rows = [(float("inf"), None, 'a"b\n<script>', "")]
    out = io.StringIO()
    write_json(out, ["a", "b", "c", "d"], rows)
    assert json.loads(out.getvalue()) == [{"a": None, "b": None, "c": 'a"b\n<script>', "d": ""}]
    out = io.StringIO()
    write_json(out, ["a"], [])
    assert out.getvalue() == "[]\n"
    out = io.StringIO()
    write_csv(out, ["a", "b", "c", "d"], rows)
    assert out.getvalue() == 'a,b,c,d\ninf,,"a""b\n<script>",""\n'
