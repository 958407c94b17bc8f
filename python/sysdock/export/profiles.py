"""Flame graphs: of time in calls, of CPU time by samples, and of times on no CPU.

Calls: program, the stack of the call where the recording has one, then call and file. CPU: program, functions
of the program, functions of the kernel (with `_[k]` appended, as viewers know it from perf). Waits: program,
the stack of long calls, call, what it waited for, and who ended it. Steps: task, then functions by who called
whom, in instructions.

Collapsed: a line `a;b;c 123` for each distinct stack, the number in nanoseconds (calls, where the log has no
durations); flamegraph.pl and most viewers read it. Speedscope: its own JSON format, a sampled profile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO

from sysdock.analysis import Session
from sysdock.export.traces import Written
from sysdock.sentences import say
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
_STACKS_SQL = """SELECT stack_id, concat(coalesce(function, object, '?'),
    CASE WHEN object LIKE '[%' AND object <> '[vdso]' THEN '_[k]' ELSE '' END)
FROM stacks ORDER BY stack_id, frame DESC"""
_CPU_SQL = """WITH used AS (
    SELECT p.comm_id, s.stack_id, s.kernel_stack_id, CAST(sum(s.period_ns) AS BIGINT) AS weight
    FROM samples AS s JOIN processes AS p USING (task_id) GROUP BY p.comm_id, s.stack_id, s.kernel_stack_id
)
SELECT c.comm, u.stack_id, u.kernel_stack_id, u.weight, count(*) OVER () AS total
FROM used AS u LEFT JOIN commands AS c ON c.comm_id = u.comm_id
WHERE u.weight > 0 ORDER BY u.weight DESC, c.comm, u.stack_id, u.kernel_stack_id LIMIT $most"""
_WAITS_SQL = """WITH waits AS (
    SELECT task_id, stack_id, call, path, cause, waker_task_id, waker, wait_ns AS ns
    FROM run_states WHERE wait_ns > 0
    UNION ALL
    SELECT task_id, stack_id, call, path, 'CPU', NULL, NULL, runnable_ns FROM run_states WHERE runnable_ns > 0
), used AS (
    SELECT p.comm, w.stack_id, w.call, w.path, w.cause, coalesce(o.comm, w.waker) AS waker,
        CAST(sum(w.ns) AS BIGINT) AS weight
    FROM waits AS w
    JOIN processes AS p ON p.task_id = w.task_id
    LEFT JOIN processes AS o ON o.task_id = w.waker_task_id
    GROUP BY ALL
)
SELECT *, count(*) OVER () AS total FROM used
ORDER BY weight DESC, comm, stack_id, call, path, cause, waker LIMIT $most"""

_STEPS_SQL = """SELECT t.comm, c.path, CAST(sum(c.steps) AS BIGINT) AS weight, count(*) OVER () AS total
FROM call_paths AS c JOIN traced_tasks AS t ON t.task_id = c.task_id
WHERE c.steps > 0 GROUP BY t.comm, c.path ORDER BY weight DESC, t.comm, c.path LIMIT $most"""


@dataclass(frozen=True)
class Flames:
    """The subject of a flame graph: the tables that it needs, its name, and the meaning of its numbers."""

    needs: tuple[str, ...]
    name: str
    # At most this many stacks: frames, outermost first, their weight, and the number of all stacks.
    stacks: Callable[[Session, int], Iterator[tuple[list[str], int, int]]]
    # The unit's name in speedscope.
    unit: str = "nanoseconds"


def write_collapsed(session: Session, out: IO[bytes], most: int, of: str = "calls") -> Written:
    """Writes collapsed stacks."""
    samples, total = _samples(session, most, of)
    for frames, weight in samples:
        # The format has no escapes: `;` parts frames, the last blank parts the weight.
        words = ";".join(visible(frame.replace(";", ":").replace("\n", " ")) for frame in frames)
        out.write(f"{words} {weight}\n".encode("utf-8", "replace"))
    return Written(len(samples), total)


def write_speedscope(session: Session, out: IO[bytes], most: int, of: str = "calls") -> Written:
    """Writes a speedscope file: https://www.speedscope.app/file-format-schema.json."""
    frames: dict[str, int] = {}
    found, total = _samples(session, most, of)
    samples = [[frames.setdefault(name, len(frames)) for name in names] for names, _ in found]
    weights = [weight for _, weight in found]
    timed = of != "calls" or session.recording.has_durations
    profile = {
        "type": "sampled",
        "name": FLAMES[of].name if timed else "calls",
        "unit": FLAMES[of].unit if timed else "none",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }
    content = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": say(session.subject, "en"),
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


def _samples(session: Session, most: int, of: str) -> tuple[list[tuple[list[str], int]], int]:
    """Frames from the outermost in, with their weight; and how many distinct ones there are in all."""
    found = list(FLAMES[of].stacks(session, most))
    return [(frames, weight) for frames, weight, _ in found], found[0][2] if found else 0


def _of_calls(session: Session, most: int) -> Iterator[tuple[list[str], int, int]]:
    stacks = stacks_of(session)
    weight = "ns" if session.recording.has_durations else "calls"
    sql = _USED_SQL.replace("$most", str(int(most))).replace("$weight", weight)
    for comm, stack, call, path, weight, total in session.fetch(sql):
        yield [comm or "?", *stacks.get(stack, ()), call, *([path] if path else ())], weight, total


def _of_cpu(session: Session, most: int) -> Iterator[tuple[list[str], int, int]]:
    stacks = stacks_of(session)
    for comm, stack, kernel, weight, total in session.fetch(_CPU_SQL.replace("$most", str(int(most)))):
        yield [comm or "?", *stacks.get(stack, ()), *stacks.get(kernel, ())], weight, total


def _of_waits(session: Session, most: int) -> Iterator[tuple[list[str], int, int]]:
    stacks = stacks_of(session)
    rows = session.fetch(_WAITS_SQL.replace("$most", str(int(most))))
    for comm, stack, call, path, cause, waker, weight, total in rows:
        what = [f"waiting: {cause}" if cause != "CPU" else "waiting for a CPU"]
        of_call = [call] if call else []
        by = [f"woken by {waker}"] if waker else []
        yield (
            [comm or "?", *stacks.get(stack, ()), *of_call, *what, *([path] if path else ()), *by],
            weight,
            total,
        )


def _of_steps(session: Session, most: int) -> Iterator[tuple[list[str], int, int]]:
    for comm, path, steps, total in session.fetch(_STEPS_SQL.replace("$most", str(int(most)))):
        yield [comm or "?", *path.split(";")], steps, total


FLAMES = {
    "calls": Flames(("calls",), "time in calls", _of_calls),
    "cpu": Flames(("samples",), "CPU time", _of_cpu),
    "waits": Flames(("run_states",), "time on no CPU", _of_waits),
    "steps": Flames(("call_paths", "traced_tasks"), "instructions", _of_steps, "none"),
}
