"""Rows of several hosts as one: sums, times by our own clock, and what the whole is worth."""

from __future__ import annotations

from typing import Any

import pytest
from sysdock.health.nodes import Clock, divided, merged

S = 10**9
START = 1_700_000_000 * S
EXACT = Clock(0, 0)


def row(**changed: Any) -> dict[str, Any]:
    """A host's row: two processes that write 100 MiB/s for a second, all the time together."""
    usual = {
        "item": "transfer",
        "operation": "write",
        "hosts": "its own name",
        "processes": 2,
        "bytes": 100 << 20,
        "operations": 100,
        "errors": 0,
        "started_ns": START,
        "first_end_ns": START + S,
        "ended_ns": START + S,
        "overlap": 1.0,
        "bytes_per_s": float(100 << 20),
        "operations_per_s": 100.0,
        "device_read_bytes": 0,
        "device_write_bytes": 100 << 20,
        "p50_ns": 10,
        "p99_ns": 10,
        "max_ns": 10,
        "status": "measured",
        "note": None,
        "latencies": [[8, 10, 100]],
        "progress": [[0, START, S, 50 << 20, 50], [1, START, S, 50 << 20, 50]],
    }
    assert changed.keys() <= usual.keys()
    return {**usual, **changed}


def of_two(first: dict[str, Any], second: dict[str, Any], *clocks: Clock) -> dict[str, Any]:
    return merged([first, second], ["a", "b"], clocks or (EXACT, EXACT))


def test_what_hosts_did_adds_up() -> None:
    both = of_two(row(), row(bytes=50 << 20, operations=50, errors=3, processes=1))
    assert (both["processes"], both["bytes"], both["operations"], both["errors"]) == (3, 150 << 20, 150, 3)
    assert (both["hosts"], both["status"], both["note"]) == ("a,b", "measured", [])
    assert both["bytes_per_s"] == pytest.approx(150 << 20)
    assert both["overlap"] == 1.0


def test_the_rate_is_of_the_whole_time() -> None:
    later = row(started_ns=START + S // 2, first_end_ns=START + 3 * S // 2, ended_ns=START + 3 * S // 2)
    both = of_two(row(), later)
    assert (both["started_ns"], both["first_end_ns"], both["ended_ns"]) == (
        START,
        START + S,
        START + 3 * S // 2,
    )
    assert both["operations_per_s"] == pytest.approx(200 / 1.5)
    # From the last start, at 0.5 s, to the first end, at 1 s, of 1.5 s.
    assert both["overlap"] == pytest.approx(1 / 3)
    assert both["status"] == "no_overlap"
    [note] = both["note"]
    assert (note["code"], note["part"]) == ("load/little_overlap", pytest.approx(1 / 3))


def test_hosts_one_after_the_other_do_not_overlap() -> None:
    both = of_two(row(), row(started_ns=START + 2 * S, first_end_ns=START + 3 * S, ended_ns=START + 3 * S))
    assert (both["overlap"], both["status"]) == (0.0, "no_overlap")


def test_a_hosts_own_late_starter_counts() -> None:
    # One process of the second host ran for the last half second only.
    both = of_two(row(), row(overlap=0.5))
    assert both["overlap"] == pytest.approx(0.5)
    assert both["status"] == "measured"


@pytest.mark.parametrize("ahead_ns", [-3600 * S, 5 * S, 1])
def test_a_clock_that_is_off(ahead_ns: int) -> None:
    times = {name: row()[name] + ahead_ns for name in ("started_ns", "first_end_ns", "ended_ns")}
    progress = [[worker, ts + ahead_ns, *rest] for worker, ts, *rest in row()["progress"]]
    both = of_two(row(), row(**times, progress=progress), EXACT, Clock(ahead_ns, 1000))
    same = of_two(row(), row())
    assert both == same


def test_workers_are_told_apart() -> None:
    both = of_two(row(), row())
    assert [part[0] for part in both["progress"]] == [0, 1, 2, 3]
    assert sum(part[3] for part in both["progress"]) == both["bytes"]


def test_latencies_of_all_together() -> None:
    both = of_two(row(), row(latencies=[[8, 10, 60], [1000, 1100, 40]], max_ns=1050))
    assert both["latencies"] == [[8, 10, 160], [1000, 1100, 40]]
    assert (both["p50_ns"], both["p99_ns"], both["max_ns"]) == (10, 1050, 1050)


@pytest.mark.parametrize(
    ("first", "second", "worst"),
    [
        ("measured", "from_memory", "from_memory"),
        ("not_known", "measured", "not_known"),
        ("failed", "full", "failed"),
        ("damaged", "interrupted", "interrupted"),
        ("throttled", "measured", "throttled"),
    ],
)
def test_it_is_worth_no_more_than_the_worst(first: str, second: str, worst: str) -> None:
    both = of_two(row(status=first), row(status=second, note=[{"code": "load/given_up"}]))
    assert both["status"] == worst
    assert {"code": "load/on_host", "host": "b", "notes": [{"code": "load/given_up"}]} in both["note"]


def test_what_one_host_does_not_know_nobody_knows() -> None:
    both = of_two(row(device_read_bytes=None), row())
    assert both["device_read_bytes"] is None
    assert both["device_write_bytes"] == 200 << 20


def test_a_host_that_did_nothing() -> None:
    nothing = row(
        bytes=0,
        operations=0,
        started_ns=None,
        first_end_ns=None,
        ended_ns=None,
        overlap=None,
        bytes_per_s=None,
        operations_per_s=None,
        p50_ns=None,
        p99_ns=None,
        max_ns=None,
        latencies=[],
        progress=[],
        status="failed",
        note="no space left on device",
    )
    both = of_two(row(), nothing)
    assert (both["status"], both["bytes"], both["started_ns"]) == ("failed", 100 << 20, START)
    neither = of_two(nothing, nothing)
    assert (neither["bytes_per_s"], neither["p50_ns"], neither["overlap"]) == (None, None, None)


def test_a_start_that_is_not_exact_is_said() -> None:
    both = of_two(row(), row(), EXACT, Clock(0, 7_000_000))
    assert (both["status"], both["note"]) == ("measured", [{"code": "load/clocks_unsure", "by": 7_000_000}])


@pytest.mark.parametrize("hosts", [1, 2, 3, 7])
@pytest.mark.parametrize("processes", [1, 2, 5, 100])
def test_a_step_is_shared_out(hosts: int, processes: int) -> None:
    step = {"item": "transfer", "processes": processes, "length_bytes": 4096, "size_bytes": 100 << 20}
    parts = divided(step, hosts)
    assert len(parts) == hosts
    busy = [part for part in parts if part is not None]
    own = [part["processes"] for part in busy]
    assert (sum(own), min(own) >= 1, max(own) - min(own) <= 1) == (processes, True, True)
    # No file is larger because there are more hosts, and none is left out.
    shares = {part["size_bytes"] // part["processes"] for part in busy}
    assert max(shares) - min(shares) <= 1
    assert step["size_bytes"] - sum(part["size_bytes"] for part in busy) in range(hosts)
    assert all(part["length_bytes"] == 4096 for part in busy)
