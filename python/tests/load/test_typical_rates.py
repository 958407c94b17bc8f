"""Which rates of a check become those of the site."""

from __future__ import annotations

from typing import Any

from sysdock.health.results import typical


def row(operation: str, length: int, rate: float | None, **changed: Any) -> dict[str, Any]:
    """A measurement of a transfer through the page cache."""
    usual = {
        "item": "transfer",
        "operation": operation,
        "layout": "own",
        "engine": "sysdock",
        "direct": False,
    }
    return {**usual, "length_bytes": length, "bytes_per_s": rate, "status": "measured", **changed}


def test_the_highest_rate_of_the_largest_requests() -> None:
    rows = [row("write", 4096, 9e9), row("write", 1 << 20, 1.2345e9), row("write", 1 << 20, 1e9)]
    assert typical([*rows, row("read", 1 << 20, 2e9)]) == {"write": 1.23e9, "read": 2e9}


def test_only_what_was_measured_counts() -> None:
    others = (
        "from_memory",
        "not_known",
        "no_overlap",
        "too_short",
        "throttled",
        "failed",
        "skipped",
        "reported",
    )
    assert typical([row("read", 1 << 20, 2e9, status=status) for status in others]) == {}
    # Shorter requests do not stand in for those that could not be measured.
    assert typical([row("read", 1 << 20, 2e9, status="from_memory"), row("read", 4096, 1e9)]) == {}


def test_other_ways_to_the_file_system_do_not_count() -> None:
    others = [
        row("read", 1 << 20, 5e9, direct=True),
        row("read", 1 << 20, 5e9, layout="shared"),
        row("read", 1 << 20, 5e9, engine="fio"),
        row("read", 1 << 20, 5e9, item="volume"),
        row("read", 1 << 20, None),
    ]
    assert typical(others) == {}
    assert typical([*others, row("read", 1 << 20, 1e9)]) == {"read": 1e9}
