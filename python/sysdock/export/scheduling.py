"""Which thread each CPU ran: the events that Perfetto makes its tracks of CPUs and of states of threads from.

Of threads that are not recorded nothing is known: a CPU that ran one is shown idle. So is the CPU on which a
thread ran until it first left one: which it was is not recorded. Field numbers: those of
perfetto/protos/perfetto/trace/ftrace/ftrace_event_bundle.proto, ftrace_event.proto and sched.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from sysdock.analysis import Session
from sysdock.export.protobuf import Field, message

_BUNDLE = 1
_CPU, _EVENT = 1, 2
_TIMESTAMP, _PID, _SWITCH, _WAKING = 1, 2, 4, 20
_PREV_COMM, _PREV_PID, _PREV_STATE, _NEXT_COMM, _NEXT_PID = 1, 2, 4, 5, 6
_COMM, _WOKEN_PID, _TARGET_CPU = 1, 2, 5
# Bits of the kernel for states, as Perfetto reads them (include/linux/sched.h).
_STATES = {"sleeping": 1, "uninterruptible": 2, "stopped": 4, "traced": 8, "ended": 16}
_EVENTS_PER_BUNDLE = 10_000
_IDLE = (0, "swapper")
# From the end of each time on no CPU to the next one, or to the end of the thread; the longest.
_RUNS_SQL = """WITH runs AS (
    SELECT task_id, cpu, end_ts_ns AS from_ns, lead(ts_ns) OVER later AS until_ns,
        lead(state) OVER later AS state
    FROM run_states WINDOW later AS (PARTITION BY task_id ORDER BY ts_ns)
), chosen AS (
    SELECT r.cpu, r.from_ns, coalesce(r.until_ns, p.end_ts_ns) AS until_ns,
        CASE WHEN r.until_ns IS NULL THEN 'ended' ELSE r.state END AS state,
        p.tid, coalesce(p.comm, '?') AS comm
    FROM runs AS r JOIN processes AS p USING (task_id)
    WHERE r.cpu IS NOT NULL AND coalesce(r.until_ns, p.end_ts_ns) > r.from_ns
    ORDER BY until_ns - from_ns DESC, r.from_ns LIMIT $most
)
SELECT * FROM chosen ORDER BY cpu, from_ns"""
_WAKES_SQL = """SELECT r.cpu, r.ts_ns + r.wait_ns AS at_ns, p.tid, coalesce(p.comm, '?') AS comm,
    w.tid AS waker
FROM run_states AS r
JOIN processes AS p ON p.task_id = r.task_id
JOIN processes AS w ON w.task_id = r.waker_task_id
WHERE r.cpu IS NOT NULL ORDER BY r.cpu, at_ns LIMIT $most"""


def scheduling_packets(session: Session, most: int) -> Iterator[Field]:
    """Fields of packets with the events of the CPUs, one CPU after the other; none without `run_states`."""
    if "run_states" not in session.views.available:
        return
    start = session.recording.manifest["started_ns"]
    switches = session.fetch(_RUNS_SQL.replace("$most", str(int(most))))
    for cpu, runs in groupby(switches, key=lambda row: row[0]):
        yield from _bundles(cpu, _switches(start, runs))
    wakes = session.fetch(_WAKES_SQL.replace("$most", str(int(most))))
    for cpu, rows in groupby(wakes, key=lambda row: row[0]):
        yield from _bundles(cpu, (_waking(start, *row) for row in rows))


def _switches(start: int, runs: Iterator[tuple[Any, ...]]) -> Iterator[bytes]:
    """From the times that threads ran on a CPU to its switches: from each to the next, or to none."""
    before, until_ns, state = _IDLE, -1, 0
    for _, from_ns, next_until_ns, next_state, tid, comm in runs:
        if before != _IDLE and until_ns < from_ns:
            yield _switch(until_ns - start, before, state, _IDLE)
            before, state = _IDLE, 0
        yield _switch(from_ns - start, before, state, (tid, comm))
        before, until_ns, state = (tid, comm), next_until_ns, _STATES.get(next_state, 0)
    if before != _IDLE:
        yield _switch(until_ns - start, before, state, _IDLE)


def _switch(at: int, before: tuple[int, str], state: int, after: tuple[int, str]) -> bytes:
    fields: list[Field] = [(_PREV_COMM, before[1]), (_PREV_PID, before[0]), (_PREV_STATE, state)]
    fields += [(_NEXT_COMM, after[1]), (_NEXT_PID, after[0])]
    return message([(_TIMESTAMP, at), (_PID, before[0]), (_SWITCH, message(fields))])


def _waking(start: int, cpu: int, at_ns: int, tid: int, comm: str, waker: int) -> bytes:
    fields: list[Field] = [(_COMM, comm), (_WOKEN_PID, tid), (_TARGET_CPU, cpu)]
    return message([(_TIMESTAMP, at_ns - start), (_PID, waker), (_WAKING, message(fields))])


def _bundles(cpu: int, events: Iterator[bytes]) -> Iterator[Field]:
    held: list[Field] = []
    for event in events:
        held.append((_EVENT, event))
        if len(held) == _EVENTS_PER_BUNDLE:
            yield _BUNDLE, message([(_CPU, cpu), *held])
            held = []
    if held:
        yield _BUNDLE, message([(_CPU, cpu), *held])
