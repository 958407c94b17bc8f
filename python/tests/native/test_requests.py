"""Requests and where their time went, against what clients saw and programs do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from scenes import PROBED_CALLS, SERVED_REQUESTS
from sysdock.analysis import Session
from sysdock.analysis.diagnosis import diagnose_by
from sysdock.library import Library
from sysdock.recording import Recording


def session_of(folder: Path) -> Session:
    return Session(Recording.open(folder / "rec"), Library())


@pytest.mark.parametrize("recorder", ["kernel", "strace"])
def test_requests_of_a_socket_are_those_of_its_client(scene: Callable[..., Path], recorder: str) -> None:
    folder = scene("served_requests", recorder)
    seen_ns = [int(line) for line in (folder / "said").read_text().splitlines()]
    with session_of(folder) as session:
        rows = session.fetch("SELECT request, dur_ns FROM requests ORDER BY ts_ns")
        [latency] = session.run("requests/latency").rows()
    assert [request for request, _ in rows] == ["socket"] * SERVED_REQUESTS
    # The way there and back is not in it.
    assert all(0 < dur_ns < seen for (_, dur_ns), seen in zip(rows, seen_ns, strict=True))
    slow = [number for number, (_, dur_ns) in enumerate(rows) if dur_ns > 15_000_000]
    assert set(slow) >= set(range(19, SERVED_REQUESTS, 20))
    assert latency[:3] == ("socket", SERVED_REQUESTS, 0)


def test_slow_requests_wait_for_what_makes_them_slow(scene: Callable[..., Path]) -> None:
    with session_of(scene("served_requests")) as session:
        [first, *_] = session.run("requests/where").rows()
    assert first[:2] == ("socket", "waiting: timer")
    assert first[3] > 15_000_000 > 1_000_000 > first[4]


def test_requests_between_probes_have_parts_that_add_up(scene: Callable[..., Path]) -> None:
    with session_of(scene("probes")) as session:
        rows = [row for row in session.run("requests/where").rows() if row[0] == "serve"]
        durations = sorted(session.fetch("SELECT dur_ns FROM requests WHERE request = 'serve'"), reverse=True)
        slowest = session.run("requests/slowest", {"most": 4}).rows()
    assert rows[0][1:3] == ("waiting: timer", "clock_nanosleep in serve")
    slow = durations[: PROBED_CALLS // 100]
    assert sum(row[3] for row in rows) == pytest.approx(sum(ns for (ns,) in slow) / len(slow), abs=len(rows))
    assert sum(row[6] for row in rows) == pytest.approx(1, abs=0.01)
    waits = [(dur_ns, waited_ns) for request, _, dur_ns, waited_ns, *_ in slowest if request == "serve"]
    assert len(waits) == 4
    assert all(dur_ns > waited_ns > 20_000_000 for dur_ns, waited_ns in waits)


def test_a_slow_tail_is_a_note_with_its_cause(scene: Callable[..., Path]) -> None:
    limits = {"least": SERVED_REQUESTS, "slow_share": 0.05}
    with session_of(scene("served_requests")) as session:
        [found] = diagnose_by(session, session.library.rule("requests/slow_tail"), limits)
    assert (found.subject, found.status, found.gain_ns) == ("socket", "finding", 0)
    assert "waiting for timer" in found.reason
