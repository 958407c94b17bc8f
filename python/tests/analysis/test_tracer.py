"""What being traced costs is measured by calls that do nothing, and said where durations hold it."""

from __future__ import annotations

import json
import re

import pytest
from make_recording import RecordingMaker
from sysdock.analysis.tracer import tracer_cost
from sysdock.cli.diagnose import command
from sysdock.report import as_text
from sysdock.sentences import say

CALLS = [
    {"call": "getpid", "t": 0.0, "dur_ns": 9_000},
    {"call": "brk", "t": 0.1, "dur_ns": 8_000},
    # Shorter than the tracer can be: the resolution of its clock.
    {"call": "getuid", "t": 0.2, "dur_ns": 0},
    {"call": "read", "t": 0.3, "dur_ns": 5_000, "path": "/a", "transferred_bytes": 1},
    {"call": "nanosleep", "t": 0.4, "dur_ns": 100_000_000},
]


def test_calls_that_do_nothing_tell_what_the_tracer_costs(maker: RecordingMaker, open_session) -> None:
    cost = tracer_cost(open_session(maker.make(CALLS)))
    assert cost
    assert (cost.each_ns, cost.calls) == (8_500, 4)
    assert "about 8.50 µs per call, 34.00 µs for all 4 calls." in say(cost.words, "en")
    assert "1 回あたり約 8.50 µs、4 回で約 34.00 µs" in say(cost.words, "ja")


@pytest.mark.parametrize("why", ["no tracer", "no such call", "no calls"])
def test_nothing_is_said_where_nothing_tells(maker: RecordingMaker, open_session, why: str) -> None:
    if why == "no tracer":
        folder = maker.make(CALLS, clock={"includes_tracer": False})
    else:
        folder = maker.make(CALLS[4:] if why == "no such call" else [])
    assert tracer_cost(open_session(folder)) is None


def test_it_is_said_where_findings_are(maker: RecordingMaker, open_session, capsys) -> None:
    folder = maker.make(CALLS)
    session = open_session(folder)
    assert "about 8.50 µs per call" in as_text(session, "md")
    assert json.loads(as_text(session, "json"))["tracer_cost"] == {"each_ns": 8_500, "calls": 4}
    command.main([str(folder)], standalone_mode=False)
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"\d+ findings?, \d+ passed, \d+ inconclusive", lines[0])
    assert lines[1].startswith("Times include tracing overhead: about 8.50 µs per call")


@pytest.mark.parametrize(("traced", "gain_ns"), [(True, 199_000 - 200 * 500 * 199 // 200), (False, 199_000)])
def test_what_the_tracer_takes_cannot_be_saved(
    maker: RecordingMaker, open_session, traced: bool, gain_ns: int
) -> None:
    write = {"call": "write", "path": "/out", "transferred_bytes": 40, "dur_ns": 1000}
    calls = [{"call": "getpid", "dur_ns": 500} for _ in range(20)] + [write] * 200
    calls.append({"call": "nanosleep", "t": 0.001, "dur_ns": 1_000_000})
    session = open_session(maker.make(calls, clock={"includes_tracer": traced}))
    [found] = [one for one in session.diagnose() if one.rule == "io/small_requests"]
    assert (found.cost_ns, found.gain_ns) == (200_000, gain_ns)
