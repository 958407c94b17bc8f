"""Timelines: every call a slice on the track of its thread.

Perfetto: a binary trace of TrackEvent packets, exact nanoseconds. Chrome: the JSON trace event format, which
most viewers read (Perfetto, chrome://tracing), in microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

from sysdock.analysis import Session
from sysdock.analysis.marks import marks_of
from sysdock.export.protobuf import Field, message
from sysdock.export.scheduling import scheduling_packets
from sysdock.sentences import say
from sysdock.text import harmless_json, visible

_BATCH = 10_000

THREADS_SQL = """SELECT task_id, process_id, pid, tid, coalesce(comm, '') AS comm,
    coalesce(command, '') AS command
FROM processes ORDER BY tree_order"""
# If there are too many calls, a picture can show the longest ones.
_CALLS_SQL = """WITH chosen AS (
    SELECT ts_ns, dur_ns, task_id, call, class, path, transferred_bytes, offset_bytes, errno, stack_id
    FROM calls WHERE via IS NULL ORDER BY coalesce(dur_ns, 0) DESC, ts_ns, task_id LIMIT $most
)
SELECT * FROM chosen ORDER BY ts_ns, task_id"""


@dataclass(frozen=True)
class Written:
    """Number of calls (or samples) in the file and in all, and which ones are there if not all are."""

    shown: int
    total: int
    kept: str = "the longest"


def write_chrome(session: Session, out: IO[bytes], most: int) -> Written:
    """Writes the JSON trace event format: `X` events for calls, `M` events with names."""
    first = True

    def emit(event: dict[str, Any]) -> None:
        nonlocal first
        out.write(
            (b"\n" if first else b",\n")
            + harmless_json(json.dumps(event, ensure_ascii=False)).encode("utf-8", "replace")
        )
        first = False

    out.write(b'{"displayTimeUnit":"ns","traceEvents":[')
    threads = {}
    for task_id, process, pid, tid, comm, command in session.fetch(THREADS_SQL):
        # Ids are used again, and by other hosts; numbers of tasks are not.
        threads[task_id] = (process, task_id)
        name = f"{comm or command.partition(' ')[0]} {pid}"
        if task_id == process:
            emit({"ph": "M", "name": "process_name", "pid": process, "tid": task_id, "args": {"name": name}})
        thread = {"name": f"{comm} {tid}"}
        emit({"ph": "M", "name": "thread_name", "pid": process, "tid": task_id, "args": thread})
    start = session.recording.manifest["started_ns"]
    shown = 0
    for ts_ns, dur_ns, task_id, call, class_, path, moved, offset, errno, _ in calls_of(session, most):
        process, thread_id = threads.get(task_id, (task_id, task_id))
        given = {"path": path, "bytes": moved, "offset": offset, "error": errno}
        event = {"name": call, "cat": class_, "ph": "X" if dur_ns is not None else "i", "pid": process}
        event |= {"tid": thread_id, "ts": (ts_ns - start) / 1000}
        event |= {"dur": dur_ns / 1000} if dur_ns is not None else {"s": "t"}
        emit({**event, "args": {key: value for key, value in given.items() if value is not None}})
        shown += 1
    for one in marks_of(session):
        name, ts = say(one.what, "en"), one.at_ns / 1000
        emit({"name": name, "cat": "mark", "ph": "i", "s": "g", "pid": 0, "tid": 0, "ts": ts})
    out.write(b"\n]}\n")
    return Written(shown, calls_total(session))


# Field numbers of perfetto/protos/perfetto/trace/: trace_packet.proto, track_event/*.proto.
_PACKET = 1
TIMESTAMP, _SEQUENCE, TRACK_EVENT, _SEQUENCE_FLAGS, TRACK_DESCRIPTOR = 8, 10, 11, 13, 60
EVENT_TYPE, EVENT_TRACK, EVENT_CATEGORY, EVENT_NAME, _EVENT_NOTE = 9, 11, 22, 23, 4
_NOTE_NAME, _NOTE_INT, _NOTE_TEXT = 10, 4, 6
UUID, _PARENT, NAME, _PROCESS, _THREAD = 1, 5, 2, 3, 4
BEGIN, END, _INSTANT = 1, 2, 3
# One sequence of packets; its first one clears the earlier state.
_OUR_SEQUENCE, _CLEARED = 1, 1
# The numbers of processes and threads are far below.
_MARKS_TRACK = 1 << 62


def write_perfetto(session: Session, out: IO[bytes], most: int) -> Written:
    """Writes a Perfetto trace: a track for each thread, below its process; a slice for each call.

    With the scheduler recorded, also its events: which thread each CPU ran, and the states of threads.
    """
    for number, (task_id, process, pid, tid, comm, command) in enumerate(session.fetch(THREADS_SQL)):
        name = comm or command.partition(" ")[0] or "?"
        if task_id == process:
            about = message([(1, pid), (6, name)])
            write_packet(
                out,
                [(TRACK_DESCRIPTOR, message([(UUID, _process_track(process)), (_PROCESS, about)]))],
                number,
            )
        about = message([(1, pid), (2, tid), (5, name)])
        track: list[Field] = [
            (UUID, _thread_track(task_id)),
            (_PARENT, _process_track(process)),
            (_THREAD, about),
        ]
        write_packet(out, [(TRACK_DESCRIPTOR, message(track))], number)
    if marks_of(session):
        write_packet(out, [(TRACK_DESCRIPTOR, message([(UUID, _MARKS_TRACK), (NAME, "marks")]))])
    start = session.recording.manifest["started_ns"]
    # A call ends before the next of its thread begins, but not before calls of other threads do: its end is
    # written with the next one of its thread. At most one call of a thread is open.
    open_ends: dict[int, int] = {}
    shown = 0
    for ts_ns, dur_ns, task_id, call, class_, path, moved, offset, errno, _ in calls_of(session, most):
        at = ts_ns - start
        if task_id in open_ends:
            _slice_end(out, task_id, min(open_ends.pop(task_id), at))
        notes = [("path", path), ("bytes", moved), ("offset", offset), ("error", errno)]
        kind = BEGIN if dur_ns is not None else _INSTANT
        event = [(EVENT_TYPE, kind), (EVENT_TRACK, _thread_track(task_id)), (EVENT_CATEGORY, class_)]
        event += [(EVENT_NAME, call), *(_note(*note) for note in notes if note[1] is not None)]
        write_packet(out, [(TIMESTAMP, at), (TRACK_EVENT, message(event))])
        if dur_ns is not None:
            open_ends[task_id] = at + dur_ns
        shown += 1
    for task_id, end in open_ends.items():
        _slice_end(out, task_id, end)
    for one in marks_of(session):
        instant: list[Field] = [
            (EVENT_TYPE, _INSTANT),
            (EVENT_TRACK, _MARKS_TRACK),
            (EVENT_CATEGORY, "mark"),
        ]
        instant.append((EVENT_NAME, visible(say(one.what, "en"))))
        write_packet(out, [(TIMESTAMP, one.at_ns), (TRACK_EVENT, message(instant))])
    for field in scheduling_packets(session, most):
        write_packet(out, [field])
    return Written(shown, calls_total(session))


def _slice_end(out: IO[bytes], task_id: int, at: int) -> None:
    event = message([(EVENT_TYPE, END), (EVENT_TRACK, _thread_track(task_id))])
    write_packet(out, [(TIMESTAMP, at), (TRACK_EVENT, event)])


def _note(name: str, value: int | str) -> tuple[int, bytes]:
    kind = _NOTE_INT if isinstance(value, int) else _NOTE_TEXT
    shown = visible(value) if isinstance(value, str) else value
    return _EVENT_NOTE, message([(_NOTE_NAME, name), (kind, shown)])


def write_packet(out: IO[bytes], fields: Sequence[Field], number: int | None = None) -> None:
    """Writes a packet; the first one of a file has the number 0."""
    flags = [(_SEQUENCE_FLAGS, _CLEARED)] if number == 0 else []
    out.write(message([(_PACKET, message([(_SEQUENCE, _OUR_SEQUENCE), *flags, *fields]))]))


def _process_track(process: int) -> int:
    # 0 is no uuid; processes and threads have even and odd numbers.
    return 2 * process + 2


def _thread_track(task_id: int) -> int:
    return 2 * task_id + 1


def calls_of(session: Session, most: int) -> Iterator[tuple[Any, ...]]:
    """The `most` longest calls in order of time, with the columns of `_CALLS_SQL`."""
    cursor = session.execute(_CALLS_SQL.replace("$most", str(int(most))))
    while rows := cursor.fetchmany(_BATCH):
        yield from rows


def calls_total(session: Session) -> int:
    """Number of calls that threads made themselves: an operation of a ring is not a slice of a thread's
    time.
    """
    [(total,)] = session.fetch("SELECT count(*) FROM calls WHERE via IS NULL")
    return int(total)
