"""Comparisons of two recordings, against sums worked out by hand."""

from __future__ import annotations

from make_recording import RecordingMaker, own
from sysdock.sections.comparison import compare


def writes(path: str, count: int, dur_ns: int = 1000) -> list[dict]:
    """Small writes to one file."""
    return [
        {"t": n / 1e6, "call": "write", "path": path, "transferred_bytes": 10, "dur_ns": dur_ns}
        for n in range(count)
    ]


def test_what_is_gone_new_and_different(maker: RecordingMaker, open_session) -> None:
    a = open_session(maker.make([*writes("/out", 300), *writes("/both", 300)], name="a"))
    b = open_session(maker.make([*writes("/new", 400, 3000), *writes("/both", 300)], name="b"))
    found = compare(a, b)
    totals = {name: (in_a.value, in_b.value) for name, (in_a, in_b) in found.totals.items()}
    assert totals["calls"] == (600, 700)
    assert totals["data_bytes"] == (6000, 7000)
    assert totals["data_ns"] == (600_000, 1_500_000)
    assert [(change.state, change.finding.subject) for change in found.findings] == [
        ("gone", "/out"),
        ("new", "/new"),
        ("both", "/both"),
    ]
    [write] = found.lists["calls"]
    assert (write.name, write.time_ns, write.calls_a, write.calls_b) == ("write", 900_000, 600, 700)
    files = [(f.name, f.time_ns, f.calls_a, f.calls_b, f.bytes_a, f.bytes_b) for f in found.lists["files"]]
    assert files == [
        ("/new", 1_200_000, None, 400, None, 4000),
        ("/out", -300_000, 300, None, 3000, None),
        ("/both", 0, 300, 300, 3000, 3000),
    ]


def test_a_recording_does_not_differ_from_itself(maker: RecordingMaker, open_session) -> None:
    folder = maker.make()
    found = compare(open_session(folder), open_session(folder))
    assert all(a == b for a, b in found.totals.values())
    assert {change.state for change in found.findings} <= {"both"}
    assert {change.time_ns for change in [*found.lists["calls"], *found.lists["files"]]} == {0}


def test_without_durations_calls_are_compared(maker: RecordingMaker, open_session) -> None:
    calls = [{**call, "dur_ns": None} for call in writes("/out", 300)]
    a = open_session(maker.make(calls, name="a"))
    b = open_session(maker.make(calls[:100], name="b"))
    [write] = compare(a, b).lists["calls"]
    assert (write.time_a_ns, write.time_b_ns, write.calls) == (None, None, -200)


def test_a_call_without_a_name_is_compared(maker: RecordingMaker, open_session) -> None:
    """No recorder writes one; a damaged recording of one's own may have it."""
    calls = writes("/out", 3)
    nameless = [{**calls[0], "call": None}, {**calls[1], "call": "read"}, calls[2]]
    a = open_session(own(maker.make(calls, name="a")))
    b = open_session(own(maker.make(nameless, name="b")))
    found = compare(a, b)
    assert {change.name for change in found.lists["calls"]} == {"write", "read", None}
