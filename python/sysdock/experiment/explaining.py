"""Explain runs: a workload under sysdock's own recorder, and what each run spent its time on.

They belong to no verdict, as a recorder costs something. Their recordings are large, so only profiles are
kept: the time of each function, call, lock and wait along the critical path (which adds up to the elapsed
time), the number of each call, and the requests that devices got.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sysdock.analysis import Session
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.recording import Recording
from sysdock.recording.native import command_line

_WHAT = "io,faults,page_io,sched,cpu,locks,block"
# Samples in a second of CPU time: enough to see 5 % of a function in runs of a second, for some 1 % of cost.
_FREQUENCY = 997
# Stacks of a run that are kept; the others of each program are one.
_MOST_STACKS = 500
TOTAL, FUNCTION, STACK, CALL, FAULT, KERNEL = "total", "function", "stack", "call", "fault", "kernel"
LOCK, WAIT, CALLS, REQUESTS, TRANSFERRED = "lock", "wait", "calls", "requests", "transferred"
# Waits of all threads, not just those on the critical path.
LOCK_WAITS = "lock_waits"
IN_CALL, CPU_WAIT, UNKNOWN = ", in ", "for a CPU", "?"


@dataclass(frozen=True)
class Item:
    """A row of `experiment_profiles` without its run: `value` in `unit`, for each unit of work."""

    kind: str
    name: str
    value: float
    unit: str


def recorder(folder: Path, *, as_root: bool) -> list[str]:
    """The arguments that, before a command, record it into `folder`; as_root: also under sudo."""
    arguments = [sys.executable, "-m", "sysdock", "record", "-o", str(folder)]
    arguments += ["--as-root"] if as_root else []
    return [*arguments, "--what", _WHAT, "--freq", str(_FREQUENCY), "--"]


@dataclass(frozen=True)
class Profile:
    """Values of one run: items, and CPU time [ns] by stack, all per unit of its work."""

    items: tuple[Item, ...] = ()
    stacks: tuple[tuple[str, float], ...] = ()


NOTHING = Profile()


@contextmanager
def servers_recorded(folder: Path, pids: Sequence[int]) -> Iterator[None]:
    """Meanwhile, the waits of servers and their workers for locks of the kernel are recorded into `folder`.

    The command is recorded by itself: it does not start them. Without servers nothing is done.
    """
    if not pids:
        yield
        return
    arguments = command_line("record", {"output": folder, "what": "locks", "pid": list(pids)})
    process = subprocess.Popen(
        arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        _until_recording(process, folder)
        yield
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        process.communicate()


def _until_recording(process: subprocess.Popen[str], folder: Path) -> None:
    """Waits until it has begun; a UserError where it ends before."""
    while not (folder / "recording.json").exists():
        if process.poll() is not None:
            message = (process.stderr.read() if process.stderr else "").strip().splitlines()
            raise UserError(message[0] if message else f"the recorder ended with status {process.returncode}")
        time.sleep(0.02)


def profile(
    folder: Path, library: Library, devices: Sequence[str], units: float, servers: Path | None = None
) -> Profile:
    """The work of the run recorded in `folder`, for each of its `units`.

    `devices`: whose requests count; with none, those that the command's own threads made. `servers`: what
    they were recorded into, if there were any. UserError where the recording does not say when the command
    ended.
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
        waits = session.run("locks/callers").dicts()
    if servers is not None:
        with Session(Recording.open(servers), library) as session:
            waits += session.run("locks/callers").dicts()
    found = _times([(row["kind"], row["name"], row["place"], row["time_ns"]) for row in path])
    found += [Item(CALLS, call, count, "calls") for call, count in calls]
    for device, op, count, length in requests:
        found.append(Item(REQUESTS, f"{op}, {device}", count, "requests"))
        if length:
            found.append(Item(TRANSFERRED, f"{op}, {device}", length, "B"))
    found += _lock_waits(waits)
    return Profile(
        tuple(Item(item.kind, item.name, item.value / units, item.unit) for item in found),
        tuple((row["stack"], row["time_ns"] / units) for row in stacks),
    )


def _lock_waits(rows: Sequence[dict[str, Any]]) -> list[Item]:
    """Waiting time of all threads by lock and caller."""
    times: dict[str, float] = {}
    for row in rows:
        name = f"{row['lock']}{IN_CALL}{row['caller'] or row['call'] or UNKNOWN}"
        times[name] = times.get(name, 0.0) + row["time_ns"]
    ordered = sorted(times.items(), key=lambda item: (-item[1], item[0]))
    return [Item(LOCK_WAITS, name, time_ns, "ns") for name, time_ns in ordered]


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
