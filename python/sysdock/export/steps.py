"""Timelines of instruction traces: each call of a function a slice on the track of its task.

The axis is steps, which viewers show as nanoseconds: step 1,000 lies at 1 µs. One more track says which task
the processor executed; slices of the others go on meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, Literal

from sysdock.analysis import Session
from sysdock.export.protobuf import Field, message
from sysdock.export.traces import (
    BEGIN,
    END,
    EVENT_CATEGORY,
    EVENT_NAME,
    EVENT_TRACK,
    EVENT_TYPE,
    NAME,
    TIMESTAMP,
    TRACK_DESCRIPTOR,
    TRACK_EVENT,
    UUID,
    Written,
    write_packet,
)
from sysdock.text import harmless_json, visible

NEEDS = ("function_transitions", "traced_functions", "images", "traced_tasks", "traced_requests")
PROCESSOR = -1
_BATCH = 10_000
_REQUEST_SQL = "SELECT first_step, steps FROM traced_requests ORDER BY first_step LIMIT 1"
_TASKS_SQL = (
    "SELECT task_id, coalesce(comm, 'task'), coalesce(pid, task_id) FROM traced_tasks ORDER BY task_id"
)
_FUNCTIONS_SQL = """SELECT f.function_id, f.name, i.mode
FROM traced_functions AS f JOIN images AS i ON i.image_id = f.image_id"""
_DEPTHS_SQL = """SELECT depth, CAST(count(*) AS BIGINT)
FROM function_transitions WHERE how IN ('call', 'jump', 'enter')
GROUP BY depth ORDER BY depth"""
_TRANSITIONS_SQL = """SELECT step, task_id, previous_function_id, function_id, how, depth
FROM function_transitions WHERE depth <= $depth ORDER BY step"""
_SWITCHES_SQL = "SELECT step, previous_task_id, task_id FROM task_switches ORDER BY step"


@dataclass(frozen=True)
class Edge:
    """The begin or end of a slice of a track; `track`: a task, or PROCESSOR. An end has no name."""

    kind: Literal["begin", "end"]
    step: int
    track: int
    name: str = ""
    mode: str = ""


def write_chrome_steps(session: Session, out: IO[bytes], most: int) -> Written:
    """Writes the JSON trace event format: `B` and `E` events, `M` events with names."""
    depth, written = _deepest(session, most)
    events: list[dict[str, Any]] = []
    tracks = _tracks(session)
    for track, name in tracks.items():
        thread = {"ph": "M", "name": "thread_name", "pid": 0, "tid": track}
        events.append({**thread, "args": {"name": name}})
    out.write(b'{"displayTimeUnit":"ns","traceEvents":[')
    out.write(b",\n".join(map(_json, events)))
    for edge in _edges(session, depth, tracks):
        event = {"ph": edge.kind[0].upper(), "pid": 0, "tid": edge.track, "ts": edge.step / 1000}
        if edge.kind == "begin":
            event |= {"name": edge.name, "cat": edge.mode}
        out.write(b",\n" + _json(event))
    out.write(b"\n]}\n")
    return written


def _json(event: dict[str, Any]) -> bytes:
    return harmless_json(json.dumps(event, ensure_ascii=False)).encode("utf-8", "replace")


def write_perfetto_steps(session: Session, out: IO[bytes], most: int) -> Written:
    """Writes a Perfetto trace: a track for each task, and one for the processor."""
    depth, written = _deepest(session, most)
    tracks = _tracks(session)
    for number, (track, name) in enumerate(tracks.items()):
        about = message([(UUID, _uuid(track)), (NAME, name)])
        write_packet(out, [(TRACK_DESCRIPTOR, about)], number)
    for edge in _edges(session, depth, tracks):
        kind = BEGIN if edge.kind == "begin" else END
        event: list[Field] = [(EVENT_TYPE, kind), (EVENT_TRACK, _uuid(edge.track))]
        if edge.kind == "begin":
            event += [(EVENT_CATEGORY, edge.mode), (EVENT_NAME, edge.name)]
        write_packet(out, [(TIMESTAMP, edge.step), (TRACK_EVENT, message(event))])
    return written


def _uuid(track: int) -> int:
    # 0 is no uuid.
    return track + 2


def _tracks(session: Session) -> dict[int, str]:
    names = {PROCESSOR: "processor"}
    for task, comm, pid in session.fetch(_TASKS_SQL):
        names[task] = visible(f"{comm} {pid}")
    return names


def _deepest(session: Session, most: int) -> tuple[int, Written]:
    """The depth of calls with at most `most` of them, and their part of all calls."""
    depth, shown, total = 0, 0, 0
    for level, count in session.fetch(_DEPTHS_SQL):
        total += count
        if total <= most:
            depth, shown = level, total
    return depth, Written(shown, total, "the outermost")


def _edges(session: Session, depth: int, tracks: dict[int, str]) -> Iterator[Edge]:
    """All of them in order of steps, from the first request on."""
    [(first, steps)] = session.fetch(_REQUEST_SQL)
    last = first + steps
    functions = {number: (visible(name), mode) for number, name, mode in session.fetch(_FUNCTIONS_SQL)}
    runs = (
        _processor(session, tracks, first, last) if "task_switches" in session.views.available else iter(())
    )
    following = next(runs, None)
    for edge in _calls(session, depth, functions, first, last):
        while following and following.step <= edge.step:
            yield following
            following = next(runs, None)
        yield edge
    if following:
        yield following
    yield from runs


def _processor(session: Session, names: dict[int, str], first: int, last: int) -> Iterator[Edge]:
    running = None
    for step, before, after in session.fetch(_SWITCHES_SQL):
        if running is None:
            yield Edge("begin", first, PROCESSOR, names[before], "task")
        yield Edge("end", step, PROCESSOR)
        yield Edge("begin", step, PROCESSOR, names[after], "task")
        running = after
    if running is not None:
        yield Edge("end", last, PROCESSOR)


def _calls(
    session: Session, depth: int, functions: dict[int, tuple[str, str]], first: int, last: int
) -> Iterator[Edge]:
    # By task: functions from the outermost on; None where no one saw which one it is.
    stacks: dict[int, list[int | None]] = {}
    cursor = session.execute(_TRANSITIONS_SQL.replace("$depth", str(depth)))
    while rows := cursor.fetchmany(_BATCH):
        for step, task, before, function, how, deep in rows:
            stack = stacks.get(task)
            if stack is None:
                is_deeper = how in ("call", "enter")
                stack = stacks[task] = [None] * (deep - 2 if is_deeper else deep - 1)
                if deep > 1 or not is_deeper:
                    stack.append(before)
                    # Task 0 is the one that executes first; of others, nothing before is known.
                    yield Edge("begin", first if task == 0 else step, task, *functions[before])
            while len(stack) > deep or (len(stack) == deep and not _goes_on(stack, function, how)):
                if stack.pop() is not None:
                    yield Edge("end", step, task)
            if len(stack) < deep:
                stack += [None] * (deep - 1 - len(stack))
                stack.append(function)
                yield Edge("begin", step, task, *functions[function])
    for task, stack in stacks.items():
        for function in reversed(stack):
            if function is not None:
                yield Edge("end", last, task)


def _goes_on(stack: list[int | None], function: int, how: str) -> bool:
    """Whether the innermost function is the one that a return leads to."""
    return how in ("return", "leave") and stack[-1] == function
