"""Measurements as text for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sysdock.analysis import Session
from sysdock.library import Column
from sysdock.sentences import facts_from_json, say
from sysdock.text import human_bytes, human_ns

_HEAD = ("item", "operation", "request", "processes", "how", "rate", "operations/s", "p50", "p99", "status")
COLUMNS = [Column(name, "VARCHAR", None, "") for name in _HEAD]


def rows(session: Session) -> list[dict[str, Any]]:
    """The rows of `load_results`, as measured."""
    return session.dicts("SELECT * FROM load_results ORDER BY result_id")


def lines(found: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Each row in the words of `COLUMNS`."""
    return [_line(row) for row in found]


def typical(found: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Rates of a file system as a site's file has them [B/s]: `read`, `write`, as far as they were measured.

    Of the largest requests through the page cache, a file for each process, the highest over the processes;
    only what was really measured counts.
    """
    rates = {}
    for operation in ("read", "write"):
        rows = [row for row in found if _is_plain(row, operation)]
        largest = max((row["length_bytes"] for row in rows), default=None)
        usable = [
            row["bytes_per_s"]
            for row in rows
            if row["length_bytes"] == largest and row["status"] == "measured" and row["bytes_per_s"]
        ]
        if usable:
            rates[operation] = float(f"{max(usable):.3g}")
    return rates


def _is_plain(row: dict[str, Any], operation: str) -> bool:
    kind = (row["item"], row["operation"], row["layout"], row["engine"])
    return kind == ("transfer", operation, "own", "sysdock") and not row["direct"] and row["length_bytes"]


def _line(row: dict[str, Any]) -> tuple[str, ...]:
    def rate(name: str, shown: Any) -> str:
        return "" if row[name] is None else shown(row[name])

    return (
        row["item"],
        row["operation"],
        "" if row["length_bytes"] is None else human_bytes(row["length_bytes"]),
        str(row["processes"]),
        how(row),
        rate("bytes_per_s", lambda value: human_bytes(value) + "/s"),
        rate("operations_per_s", lambda value: f"{value:,.0f}" if value >= 10 else f"{value:.2f}"),
        rate("p50_ns", human_ns),
        rate("p99_ns", human_ns),
        row["status"],
    )


def how(row: dict[str, Any]) -> str:
    """The setting, without its length and processes, in a few words."""
    parts = ["direct"] if row["direct"] else []
    parts += ["shared"] if row["layout"] == "shared" else []
    parts += [row["sync"]] if row["sync"] not in (None, "end") else []
    parts += [f"depth {row['depth']}"] if row["item"] == "depth" else []
    parts += [row["engine"]] if row["engine"] != "sysdock" else []
    return " ".join(parts)


def notes(found: Sequence[dict[str, Any]], lang: str) -> list[tuple[str, int]]:
    """Why numbers are not what they seem: each note, and of how many rows it is; those of most rows first."""
    counts: dict[str, int] = {}
    for row in found:
        if row["note"] and row["status"] != "measured":
            text = f"{row['status']}: {say(facts_from_json(row['note']), lang)}"
            counts[text] = counts.get(text, 0) + 1
    return sorted(counts.items(), key=lambda each: -each[1])
