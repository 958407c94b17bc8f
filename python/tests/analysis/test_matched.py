"""Analyses of two recordings, row by row."""

from __future__ import annotations

from make_recording import RecordingMaker, sample_calls
from sysdock.analysis.matched import compare_rows


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
