"""Reads recording.json for tests: the manifest, and the counts of its captures under one name each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb


def stated(folder: Path) -> dict[str, Any]:
    """recording.json, with the sums over its captures, and whether all processes ended.

    Switches that the kernel of this machine left out are no issue of a test.
    """
    manifest = json.loads((folder / "recording.json").read_text())
    captures = manifest["captures"]
    issues: dict[str, int] = {}
    for capture in captures:
        for issue, count in capture["issues"].items():
            if issue != "switch_missed":
                issues[issue] = issues.get(issue, 0) + count
    first = {
        key: captures[0][key] for key in ("recorder", "clock", "options", "families", "sources", "ended_by")
    }
    return {
        **manifest,
        **first,
        "lines_total": sum(capture["total"] for capture in captures),
        "lines_understood": sum(capture["understood"] for capture in captures),
        "lost_events": sum(capture["lost"] for capture in captures),
        "restarted_calls": sum(capture["counts"].get("restarted_calls", 0) for capture in captures),
        "issues": issues,
        "has_exits": _has_exits(folder, manifest),
    }


def _has_exits(folder: Path, manifest: dict[str, Any]) -> bool:
    parts = [str(folder / part["file"]) for part in manifest["tables"].get("processes", {}).get("parts", [])]
    if not parts:
        return True
    sql = "SELECT bool_and(end_ts_ns IS NOT NULL) FROM read_parquet($parts)"
    [(all_ended,)] = duckdb.execute(sql, {"parts": parts}).fetchall()
    return all_ended
