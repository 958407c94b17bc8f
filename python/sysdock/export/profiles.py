"""Flame graphs of time in calls: program, the stack of the call where the log has one, then call and file.

Collapsed: a line `a;b;c 123` for each distinct stack, the number in nanoseconds (calls, where the log has no
durations); flamegraph.pl and most viewers read it. Speedscope: its own JSON format, a sampled profile.
"""

from __future__ import annotations

import json
from typing import IO

from sysdock.analysis import Session
from sysdock.export.traces import Written
from sysdock.text import harmless_json, visible

_USED_SQL = """WITH used AS (
    SELECT comm_id, stack_id, call, path_id, CAST(sum(dur_ns) AS BIGINT) AS ns, count(*) AS calls
    FROM calls WHERE via IS NULL GROUP BY comm_id, stack_id, call, path_id
), ranked AS (
    SELECT *, $weight AS weight, count(*) OVER () AS total FROM used WHERE $weight > 0
    ORDER BY $weight DESC, comm_id, stack_id, call, path_id LIMIT $most
)
SELECT c.comm, r.stack_id, r.call, p.path, r.weight, r.total
FROM ranked AS r
LEFT JOIN commands AS c ON c.comm_id = r.comm_id
LEFT JOIN paths AS p ON p.path_id = r.path_id
ORDER BY r.weight DESC, c.comm, r.stack_id, r.call, p.path"""
_STACKS_SQL = "SELECT stack_id, coalesce(function, object, '?') FROM stacks ORDER BY stack_id, frame DESC"


def write_collapsed(session: Session, out: IO[bytes], most: int) -> Written:
    """Writes collapsed stacks."""
    samples, total = _samples(session, most)
    for frames, weight in samples:
        # The format has no escapes: `;` parts frames, the last blank parts the weight.
        words = ";".join(visible(frame.replace(";", ":").replace("\n", " ")) for frame in frames)
        out.write(f"{words} {weight}\n".encode("utf-8", "replace"))
    return Written(len(samples), total)


def write_speedscope(session: Session, out: IO[bytes], most: int) -> Written:
    """Writes a speedscope file: https://www.speedscope.app/file-format-schema.json."""
    frames: dict[str, int] = {}
    found, total = _samples(session, most)
    samples = [[frames.setdefault(name, len(frames)) for name in names] for names, _ in found]
    weights = [weight for _, weight in found]
    manifest = session.recording.manifest
    timed = session.recording.has_durations
    profile = {
        "type": "sampled",
        "name": "time in calls" if timed else "calls",
        "unit": "nanoseconds" if timed else "none",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }
    content = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": manifest.get("command") or session.recording.folder.name,
        "exporter": "sysdock",
        "shared": {"frames": [{"name": name} for name in frames]},
        "profiles": [profile],
    }
    out.write(harmless_json(json.dumps(content, ensure_ascii=False)).encode("utf-8", "replace"))
    return Written(len(samples), total)


def stacks_of(session: Session) -> dict[int, list[str]]:
    """The functions of each recorded stack, the outermost first; empty where none were recorded."""
    stacks: dict[int, list[str]] = {}
    if "stacks" in session.views.available:
        for stack, function in session.fetch(_STACKS_SQL):
            stacks.setdefault(stack, []).append(function)
    return stacks


def _samples(session: Session, most: int) -> tuple[list[tuple[list[str], int]], int]:
    """Frames from the outermost in, with their weight; and how many distinct ones there are in all."""
    stacks = stacks_of(session)
    timed = session.recording.has_durations
    weight = "ns" if timed else "calls"
    samples = []
    sql = _USED_SQL.replace("$most", str(int(most))).replace("$weight", weight)
    rows = session.fetch(sql)
    for comm, stack, call, path, weight, _ in rows:
        samples.append(([comm or "?", *stacks.get(stack, ()), call, *([path] if path else ())], weight))
    return samples, rows[0][-1] if rows else 0
