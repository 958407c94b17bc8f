"""Requests and where their time went, against what clients saw and programs do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from scenes import PROBED_CALLS, SERVED_REQUESTS
from sysdock.analysis import Session
from sysdock.analysis.diagnosis import diagnose_by
from sysdock.library import Library
from sysdock.recording import Recording
from sysdock.sentences import say


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
    # Its end is when the call that sends returns, by which time the client may have the reply.
    assert len(seen_ns) == len(rows)
    assert all(dur_ns > 0 for _, dur_ns in rows)
    slow = [number for number, (_, dur_ns) in enumerate(rows) if dur_ns > 15_000_000]
    assert set(slow) >= set(range(19, SERVED_REQUESTS, 20))
    assert latency[:3] == ("socket", SERVED_REQUESTS, 0)


def test_slow_requests_wait_for_what_makes_them_slow(scene: Callable[..., Path]) -> None:
    """Each 20th request sleeps. On a busy machine others may be as slow, for lack of a CPU."""
    with session_of(scene("served_requests")) as session:
        rows = session.run("requests/where", {"slow_share": 0.05}).rows()
        placed = session.fetch("SELECT row_number() OVER (ORDER BY ts_ns) FROM requests ORDER BY dur_ns DESC")
        # A wait without an event for its end is no wait for a timer.
        [(unseen,)] = session.fetch(
            "SELECT count(*) FROM run_states WHERE state = 'sleeping' AND cpu IS NULL"
        )
    slow = [number for (number,) in placed[: SERVED_REQUESTS // 20]]
    asleep = sum(number % 20 == 0 for number in slow)
    timers = [row for row in rows if row[1] == "waiting: timer"]
    assert asleep > 0
    assert sum(row[3] for row in timers) >= 0.99 * 15_000_000 * (asleep - unseen) / len(slow)
    assert sum(row[4] for row in timers) == 0


def test_requests_between_probes_have_parts_that_add_up(scene: Callable[..., Path]) -> None:
    with session_of(scene("probes")) as session:
        rows = [row for row in session.run("requests/where").rows() if row[0] == "serve"]
        durations = session.fetch("SELECT dur_ns FROM requests WHERE request = 'serve' ORDER BY dur_ns DESC")
        slowest = session.run("requests/slowest", {"most": PROBED_CALLS}).rows()
    slow = durations[: PROBED_CALLS // 100]
    assert sum(row[3] for row in rows) == pytest.approx(sum(ns for (ns,) in slow) / len(slow), abs=len(rows))
    assert sum(row[6] for row in rows) == pytest.approx(1, abs=0.01)
    waited = {
        json.loads(args)["number"]: (dur_ns, waited_ns)
        for request, _, dur_ns, waited_ns, _, _, _, args in slowest
        if request == "serve"
    }
    assert len(waited) == PROBED_CALLS
    for number in range(49, PROBED_CALLS, 50):
        dur_ns, waited_ns = waited[number]
        assert dur_ns > waited_ns > 19_800_000


def test_a_slow_tail_is_a_note(scene: Callable[..., Path]) -> None:
    limits = {"least": SERVED_REQUESTS, "slow_share": 0.05, "min_ratio": 1}
    with session_of(scene("served_requests")) as session:
        [found] = diagnose_by(session, session.library.rule("requests/slow_tail"), limits)
    assert (found.subject, found.status, found.gain_ns) == ("socket", "finding", 0)
    assert "The slowest 10 of 200 requests (socket)" in say(found.reason, "en")
