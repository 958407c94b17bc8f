"""Streaming of large results."""

from __future__ import annotations

import csv
import io
import json
import os

import pytest
from make_recording import RecordingMaker

ODD = '/tmp/it\'s "<script>"\n,[x]*'
SQL = """\
-- Numbers
-- needs: recording
-- portable: false
-- param: rows BIGINT = 3  Rows.
-- column: n BIGINT  Number.
-- column: half DOUBLE  Half of it.
-- column: text VARCHAR  Text.
SELECT range AS n, CASE WHEN range = 1 THEN 'nan'::DOUBLE ELSE range / 2 END AS half,
    CASE range WHEN 0 THEN '' WHEN 1 THEN NULL ELSE 'a,"b"' END AS text
FROM range($rows) ORDER BY n DESC"""


@pytest.fixture
def numbers(maker: RecordingMaker, open_session, pack):
    """A result of that many rows."""
    pack.add("a/numbers", SQL)
    session = open_session(maker.make(), pack.library)
    return lambda rows: session.run("a/numbers", {"rows": rows})


def test_csv_tells_null_from_empty(numbers) -> None:
    out = io.BytesIO()
    numbers(3).copy_to(out, "csv")
    assert out.getvalue() == b'n,half,text\n2,1.0,"a,""b"""\n1,nan,\n0,0.0,""\n'


def test_json_is_an_array_of_objects(numbers) -> None:
    out = io.BytesIO()
    numbers(3).copy_to(out, "json")
    assert json.loads(out.getvalue()) == [
        {"n": 2, "half": 1.0, "text": 'a,"b"'},
        {"n": 1, "half": None, "text": None},
        {"n": 0, "half": 0.0, "text": ""},
    ]


def test_nothing_is_an_empty_array(numbers) -> None:
    out = io.BytesIO()
    numbers(0).copy_to(out, "json")
    assert out.getvalue() == b"[]\n"
    out = io.BytesIO()
    numbers(0).copy_to(out, "csv")
    assert out.getvalue() == b"n,half,text\n"


def test_a_huge_result_streams_in_order(numbers, tmp_path) -> None:
    rows = 1_500_000
    with open(tmp_path / "out.csv", "wb") as out:
        numbers(rows).copy_to(out, "csv")
    with open(tmp_path / "out.csv", newline="") as file:
        reader = csv.reader(file)
        next(reader)
        assert all(int(row[0]) == rows - 1 - number for number, row in enumerate(reader))
        assert reader.line_num == rows + 1


def test_a_limit(numbers) -> None:
    out = io.BytesIO()
    numbers(1000).copy_to(out, "csv", limit=2)
    assert out.getvalue().splitlines()[1:] == [b'999,499.5,"a,""b"""', b'998,499.0,"a,""b"""']


def test_a_reader_that_goes_away_ends_it(numbers) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with pytest.raises(BrokenPipeError), os.fdopen(write_end, "wb", buffering=0) as out:
        numbers(1_000_000).copy_to(out, "csv")


def test_recorded_names_stay_as_they_are(maker: RecordingMaker, open_session) -> None:
    session = open_session(maker.make(), call="write")
    out = io.BytesIO()
    session.run("io/files").copy_to(out, "json")
    assert [row["path"] for row in json.loads(out.getvalue())] == [ODD]
    out = io.BytesIO()
    session.run("io/files").copy_to(out, "csv", raw=True)
    assert [row["path"] for row in csv.DictReader(io.StringIO(out.getvalue().decode(), newline=""))] == [ODD]
