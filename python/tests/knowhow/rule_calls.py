"""Calls to judge, and short ways to look at what a rule says of them."""

from __future__ import annotations

from typing import Any

from sysdock.analysis import Finding

Calls = list[dict[str, Any]]

# What recording.json says of a log without durations.
NO_DURATIONS = {"kind": "epoch", "resolution_ns": 1000, "has_durations": False, "note": None}


def one(findings: list[Finding]) -> Finding:
    """The only finding."""
    assert len(findings) == 1
    return findings[0]


def many(count: int, call: str, class_: str, path: str | None = None, **more: Any) -> Calls:
    """The same call that often, 1 us each."""
    return [{"call": call, "class": class_, "path": path, "dur_ns": 1000, **more} for _ in range(count)]


def transfers(path: str, sizes: list[int], call: str = "read", **more: Any) -> Calls:
    """Reads or writes of one file."""
    return [
        {"call": call, "path": path, "transferred_bytes": n, "result": n, "dur_ns": 1000, **more}
        for n in sizes
    ]


def opens(path: str, count: int, pids: int = 1, **more: Any) -> Calls:
    """Opens and closes of one file, by that many processes in turn."""
    calls = []
    for number in range(count):
        pid = {"pid": 100 + number % pids, "tid": 100 + number % pids, "dur_ns": 1000}
        calls.append({"call": "openat", "path": path, "result": 3, **pid, **more})
        calls.append({"call": "close", "path": path, **pid})
    return calls


def lasting(calls: Calls, ns: int) -> Calls:
    """The same, in a recording that takes that long."""
    return [*calls, {"call": "getpid", "t": ns / 1e9}]


def untimed(calls: Calls) -> Calls:
    """The same without durations."""
    return [{**call, "dur_ns": None} for call in calls]
