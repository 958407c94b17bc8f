"""Analyses of two recordings, row by row."""

from __future__ import annotations

from make_recording import RecordingMaker, sample_calls
from sysdock.analysis.matched import compare_rows
from sysdock.sections.comparison import compare


def test_a_recording_does_not_differ_from_itself(maker: RecordingMaker, open_session) -> None:
    path = maker.make(sample_calls(), name="a")
    a, b = open_session(path), open_session(path)
    comparable = [analysis for analysis in a.answerable() if analysis.match]
    compared = 0
    for analysis in comparable:
        found = compare_rows(a, b, analysis)
        names = [column.name for column in found.columns]
        assert len(names) == len(set(names)), analysis.id
        width = len(analysis.match)
        for row in found.rows:
            _, *sides = row[width:]
            assert sides[::2] == sides[1::2], (analysis.id, row)
            assert row[width] in (0, None), (analysis.id, row)
        compared += len(found.rows)
    assert compared > len(comparable) > 5


def test_rates_of_two_loads(maker: RecordingMaker, open_session) -> None:
    a, b = open_session(maker.make_load("a")), open_session(maker.make_load("b"))
    for id_, rows in (
        ("load/results", 6),
        ("load/by_length", 4),
        ("load/by_processes", 4),
        ("load/metadata", 2),
    ):
        found = compare_rows(a, b, a.library.analysis(id_))
        assert len(found.rows) == rows, id_
        width = len(a.library.analysis(id_).match)
        # None of the columns that name a row is a number to be compared.
        assert not {column.name for column in found.columns[width:]} & {"length_bytes_a", "processes_a"}
        assert all(row[width] in (0, None) for row in found.rows), id_


def test_loads_that_measured_different_things(maker: RecordingMaker, open_session) -> None:
    results = [
        {
            "result_id": 1,
            "item": "log",
            "operation": "append",
            "layout": "own",
            "sync": "fdatasync",
            "length_bytes": 8192,
            "processes": 1,
            "engine": "sysdock",
            "bytes": 8192,
            "operations": 1,
            "errors": 0,
            "bytes_per_s": 8192.0,
            "operations_per_s": 1.0,
            "status": "measured",
        }
    ]
    other = maker.write({"load_results": results}, "other", recorder="load", about="load")
    a, b = open_session(maker.make_load("a")), open_session(other)
    # What only one of them has is not known of the other.
    totals = {name: (one.value, two.value) for name, (one, two) in compare(a, b).totals.items()}
    assert totals.pop("log append fdatasync") == (None, 8192.0)
    assert list(totals) == ["transfer write", "transfer read", "metadata create"]
    assert all(one and two is None for one, two in totals.values())
    assert list(compare(a, a).totals) == ["transfer write", "transfer read", "metadata create"]
