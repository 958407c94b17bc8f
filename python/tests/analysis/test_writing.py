"""Tables for people."""

from __future__ import annotations

import io
import json

from sysdock.analysis.writing import table_lines, write_csv, write_json
from sysdock.library import Column

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
    write_csv(out, ["a", "b", "c", "d"], rows, raw=True)
    assert out.getvalue() == 'a,b,c,d\ninf,,"a""b\n<script>",""\n'
