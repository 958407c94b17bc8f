"""Explain runs: a workload under sysdock's own recorder, and what each run spent its time on.

They belong to no verdict, as a recorder costs something. Their recordings are large, so only profiles are
kept: the time of each function, call, lock and wait along the critical path (which adds up to the elapsed
time), the number of each call, and the requests that devices got.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Recording

_WHAT = "io,faults,page_io,sched,cpu,locks,block"
# Samples in a second of CPU time: enough to see 5 % of a function in runs of a second, for some 1 % of cost.
_FREQUENCY = 997
# Stacks of a run that are kept; the others of each program are one.
_MOST_STACKS = 500
TOTAL, FUNCTION, STACK, CALL, FAULT, KERNEL = "total", "function", "stack", "call", "fault", "kernel"
LOCK, WAIT, CALLS, REQUESTS, TRANSFERRED = "lock", "wait", "calls", "requests", "transferred"
IN_CALL, CPU_WAIT = ", in ", "for a CPU"


@dataclass(frozen=True)
class Item:
    """A row of `experiment_profiles` without its run: `value` in `unit`, for each unit of work."""

    kind: str
    name: str
    value: float
    unit: str


def recorder(folder: Path) -> list[str]:
    """The words that, before a command, record it into `folder`."""
    words = [sys.executable, "-m", "sysdock", "record", "-o", str(folder)]
    return [*words, "--what", _WHAT, "--freq", str(_FREQUENCY), "--"]


@dataclass(frozen=True)
class Profile:
    """Of one run: items, and CPU time [ns] by stack, all for each unit of its work."""

    items: tuple[Item, ...] = ()
    stacks: tuple[tuple[str, float], ...] = ()


NOTHING = Profile()


def profile(folder: Path, library: Library, devices: Sequence[str], units: float) -> Profile:
    """What the run recorded in `folder` did, for each of its `units` of work.

    `devices`: whose requests count; with none, those that the command's own threads made. UserError where the
    recording does not say when the command ended.
    """
    with Session(Recording.open(folder), library) as session:
        path = session.run("time/path").dicts()
        stacks = session.run("cpu/flame_graph", {"stacks": _MOST_STACKS}).dicts()
        calls = session.execute(
            "SELECT call, count(*) FROM calls WHERE via IS NULL GROUP BY call ORDER BY call"
        ).fetchall()
        requests = session.execute(
            _REQUESTS, {"devices": [Path(device).name for device in devices]}
        ).fetchall()
    found = _times([(row["kind"], row["name"], row["place"], row["time_ns"]) for row in path])
    found += [Item(CALLS, call, count, "calls") for call, count in calls]
    for device, op, count, length in requests:
        found.append(Item(REQUESTS, f"{op}, {device}", count, "requests"))
        if length:
            found.append(Item(TRANSFERRED, f"{op}, {device}", length, "B"))
    return Profile(
        tuple(Item(item.kind, item.name, item.value / units, item.unit) for item in found),
        tuple((row["stack"], row["time_ns"] / units) for row in stacks),
    )


_REQUESTS = """
SELECT b.device, b.op, count(*), sum(b.length_bytes)
FROM block_requests AS b
WHERE list_contains($devices, b.device) OR (len($devices) = 0 AND b.task_id IS NOT NULL)
GROUP BY b.device, b.op
ORDER BY b.device, b.op
"""


def _times(path: Sequence[tuple[str, str, str | None, int]]) -> list[Item]:
    """Rows of `time/path` by kind and name; waits in a call also count as time of the call.

    Those for a CPU do not: they depend on what else runs.
    """
    times: dict[tuple[str, str], float] = {}

    def add(kind: str, name: str, time_ns: int) -> None:
        times[kind, name] = times.get((kind, name), 0) + time_ns

    for kind, name, place, time_ns in path:
        add(TOTAL, "elapsed", time_ns)
        add(kind, name, time_ns)
        if kind == FUNCTION and place:
            add(STACK, place, time_ns)
        if kind in (LOCK, WAIT) and IN_CALL in name and not name.startswith(CPU_WAIT):
            add(CALL, name.rsplit(IN_CALL, 1)[1], time_ns)
    ordered = sorted(times.items(), key=lambda item: -item[1])
    return [Item(kind, name, time_ns, "ns") for (kind, name), time_ns in ordered]
