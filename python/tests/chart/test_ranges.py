"""Ranges: in the order of the result, on an axis that tells what it cannot show."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from sysdock import chart
from sysdock.analysis import Session
from sysdock.errors import UserError

SPREADS = """-- Spreads
-- For tests.
-- needs:  recording
-- column: name VARCHAR      Name.
-- column: min_ns BIGINT     Shortest [ns].
-- column: p25_ns BIGINT     A quarter [ns].
-- column: p50_ns BIGINT     Half [ns].
-- column: p75_ns BIGINT     Three quarters [ns].
-- column: p99_ns BIGINT     Nearly all [ns].
-- column: max_ns BIGINT     Longest [ns].
-- chart:  ranges x=name y=min_ns,p25_ns,p50_ns,p75_ns,p99_ns,max_ns y_scale=log title="Duration" title_ja="所要時間"
-- chart:  ranges x=name y=min_ns,p25_ns,p50_ns,p75_ns,p99_ns,max_ns
-- portable: false
SELECT * FROM (VALUES ROWS) AS t(name, min_ns, p25_ns, p50_ns, p75_ns, p99_ns, max_ns) WHERE name <> 'no' OR name IS NULL
"""
EVIL = "</script>\"']);alert(1)//" + "/long" * 60
Opener = Callable[..., Session]


def spreads(*rows: tuple[str, list[int | None]]) -> str:
    """The analysis above with these rows."""
    values = ", ".join(
        f"({name}, {', '.join('CAST(NULL AS BIGINT)' if n is None else f'CAST({n} AS BIGINT)' for n in numbers)})"
        for name, numbers in rows
    )
    return SPREADS.replace("ROWS", values)


def test_ranges_stand_in_the_order_of_the_result(open_session: Opener) -> None:
    many = [(f"'n{n}'", [n + 1, 20, 30, 40, 50, 1000 + n]) for n in range(30)]
    log, linear = chart.specs(open_session(s=spreads(*many)), "t/s")
    rows = log["data"]["values"]
    assert [row["name"] for row in rows] == [f"n{n}" for n in range(20)]
    assert [[row[f"y{k}"] for k in range(1, 7)] for row in rows] == [
        [n + 1, 20, 30, 40, 50, 1000 + n] for n in range(20)
    ]
    assert rows[0]["text6"] == "1.00 µs"
    assert log["title"]["subtitle"] == (
        "the first 20 of 30 rows drawn, line min to p99, box p25 to p75, mark p50, ring max"
    )
    assert log["encoding"]["x"]["title"] == "Duration (log scale)"
    # The linear axis begins at 0 and is in microseconds.
    assert linear["encoding"]["x"]["title"] == "min, p25, p50, p75, p99, max [µs]"
    assert linear["encoding"]["x"]["scale"]["zero"] is True
    assert linear["data"]["values"][3]["y6"] == pytest.approx(1.003)


def test_zeros_are_drawn_to_the_edge_and_counted(open_session: Opener) -> None:
    rows = spreads(
        ("'a'", [0, 0, 40, 50, 60, 70]), ("'b'", [30, 31, 32, 33, 34, 35]), ("'c'", [0, 0, 0, 0, 0, 0])
    )
    log, linear = chart.specs(open_session(s=rows), "t/s")
    assert log["encoding"]["x"]["scale"]["domain"][0] == 10
    first, second = log["data"]["values"]
    assert (first["y1"], first["y2"], first["y3"], first["text1"]) == (10, 10, 40, "0 ns")
    assert second["y1"] == 30
    assert "1 of value 0 cannot stand on a log scale" in log["title"]["subtitle"]
    assert log["title"]["subtitle"].endswith("1 begin at 0, drawn to the edge")
    assert [row["y1"] for row in linear["data"]["values"]] == [0, 30, 0]


def test_unknown_values_hostile_names_and_nothing(open_session: Opener) -> None:
    evil = EVIL.replace("'", "''")
    session = open_session(
        s=spreads((f"'{evil}'", [1, 2, 3, 4, 5, 6]), ("NULL", [2] * 6), ("'u'", [1, 2, None, 4, 5, 6])),
        none=spreads(("'no'", [1] * 6)),
    )
    for spec in chart.specs(session, "t/s"):
        assert [row["name"] for row in spec["data"]["values"]] == [EVIL, "(none)"]
        assert len(spec["data"]["values"][0]["label"]) <= 41
        assert "alert" not in json.dumps({key: value for key, value in spec.items() if key != "data"})
    for spec in chart.specs(session, "t/none"):
        assert spec["title"]["subtitle"] == "no data"


def test_a_range_has_six_columns(open_session: Opener) -> None:
    session = open_session(s=spreads(("'a'", [1] * 6)).replace("p99_ns,max_ns y_scale", "max_ns y_scale"))
    with pytest.raises(UserError, match="names 5 columns"):
        chart.specs(session, "t/s")
