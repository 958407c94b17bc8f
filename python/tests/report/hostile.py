"""A recording whose names hold markup."""

from __future__ import annotations

from typing import Any

from make_recording import STARTED_NS

EVIL = "/tmp/<script>alert(1)</script>"
MISSING = '/etc/\\"]}<img src=x>'
JAPANESE = "/home/亀/日本語 ファイル.txt"


def hostile_calls() -> list[dict[str, Any]]:
    """Many small writes to a file with markup in its name, failing opens, reads all over a Japanese name."""
    ok = {"dur_ns": 300_000, "comm": "</script><b>", "fd": 3}
    calls: list[dict[str, Any]] = [{"t": 0.0, "call": "openat", "path": EVIL, "result": 3, **ok}]
    for number in range(250):
        place = {"offset_bytes": 40 * number, "transferred_bytes": 40, "result": 40}
        calls.append({"t": 0.006 * number, "call": "write", "path": EVIL, **place, **ok})
        missing = {"errno": "ENOENT", "dur_ns": 500_000, "path": MISSING}
        calls.append({"t": 0.006 * number + 0.001, "call": "openat", **missing})
    for number in range(60):
        place = {"offset_bytes": number * 7919 % 50_000, "transferred_bytes": 5000, "result": 5000}
        calls.append({"t": 1.6 + 0.01 * number, "call": "read", "path": JAPANESE, **place, **ok})
    return calls


def processes() -> list[dict[str, Any]]:
    """A parent and a child, whose arguments hold markup."""
    row = {"start_ts_ns": STARTED_NS, "execs": 1, "calls": 1, "comm_id": 0, "exit_code": 0}
    end = STARTED_NS + 2_000_000_000
    return [
        {**row, "pid": 100, "tid": 100, "depth": 0, "tree_order": 0, "command": "<img>", "end_ts_ns": end},
        {**row, "pid": 101, "tid": 101, "ppid": 100, "depth": 1, "tree_order": 1, "command": "cat"},
    ]
