"""Time lines: every call is there, at its time, on the track of its thread; Perfetto's own schema reads them."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pytest
from make_recording import STARTED_NS, RecordingMaker, sample_calls
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema
from sysdock.analysis import Session
from sysdock.errors import UserError
from sysdock.export import WRITERS, write_file
from sysdock.export.protobuf import message, varint


@pytest.fixture
def session(maker: RecordingMaker, open_session) -> Session:
    """The sample, with two processes and times in nanoseconds that a double could not hold as microseconds."""
    calls = [
        *sample_calls(),
        {"t": 0.8, "call": "read", "dur_ns": 1_234_567, "path": "/tmp/日本", "comm": "tar"},
    ]
    return open_session(maker.make(calls))


def written(session: Session, format_: str, most: int = 1000) -> bytes:
    """The export in memory."""
    out = io.BytesIO()
    WRITERS[format_](session, out, most)
    return out.getvalue()


def perfetto(session: Session, most: int = 1000) -> schema.Trace:
    """The Perfetto export, read by the official message classes."""
    trace = schema.Trace()
    trace.ParseFromString(written(session, "perfetto", most))
    return trace


def slices(trace: schema.Trace) -> list[tuple]:
    """(track, name, start, duration) of all slices, as a viewer puts begins and ends together."""
    packets = sorted((p for p in trace.packet if p.HasField("track_event")), key=lambda p: p.timestamp)
    open_, found = {}, []
    for packet in packets:
        event = packet.track_event
        if event.type == event.TYPE_SLICE_BEGIN:
            assert event.track_uuid not in open_
            open_[event.track_uuid] = (event.name, packet.timestamp)
        elif event.type == event.TYPE_SLICE_END:
            name, start = open_.pop(event.track_uuid)
            found.append((event.track_uuid, name, start, packet.timestamp - start))
    assert open_ == {}
    return found


def test_perfetto_has_every_call_to_the_nanosecond(session: Session) -> None:
    trace = perfetto(session)
    sql = "SELECT 2 * task_id + 1, call, ts_ns, dur_ns FROM calls WHERE dur_ns IS NOT NULL"
    expected = [(track, call, ts - STARTED_NS, dur) for track, call, ts, dur in session.fetch(sql)]
    assert sorted(slices(trace)) == sorted(expected)
    instants = [p for p in trace.packet if p.track_event.type == p.track_event.TYPE_INSTANT]
    [(without,)] = session.fetch("SELECT count(*) FROM calls WHERE dur_ns IS NULL")
    assert len(instants) == without > 0


def test_marks_are_instants_for_all_threads(maker: RecordingMaker, open_session) -> None:
    session = open_session(maker.make(marks=[{"t": 0.5, "text": "by hand"}]))
    packets = perfetto(session).packet
    [named] = [packet.track_descriptor.uuid for packet in packets if packet.track_descriptor.name == "marks"]
    [mark] = [packet for packet in packets if packet.track_event.track_uuid == named]
    assert (mark.timestamp, mark.track_event.name) == (500_000_000, "by hand")
    events = json.loads(written(session, "chrome"))["traceEvents"]
    assert [(one["ts"], one["name"]) for one in events if one.get("s") == "g"] == [(500_000, "by hand")]


def test_perfetto_names_threads_below_their_processes(session: Session) -> None:
    tracks = [
        packet.track_descriptor for packet in perfetto(session).packet if packet.HasField("track_descriptor")
    ]
    processes = {track.uuid: track.process.pid for track in tracks if track.HasField("process")}
    threads = {(track.parent_uuid, track.thread.tid) for track in tracks if track.HasField("thread")}
    rows = session.fetch("SELECT process_id, tid FROM processes")
    assert threads == {(2 * process + 2, tid) for process, tid in rows}
    assert {parent for parent, _ in threads} == set(processes)
    assert len({track.uuid for track in tracks}) == len(tracks)


def test_perfetto_has_the_switches_of_the_scheduler(maker: RecordingMaker, open_session) -> None:
    ms = 1_000_000
    away = {"cpu": 0, "wait_ns": 0, "state": "preempted"}
    lives = [
        {
            "pid": 7,
            "tid": tid,
            "depth": 0,
            "tree_order": tid,
            "execs": 0,
            "calls": 0,
            "start_ts_ns": STARTED_NS,
            "end_ts_ns": STARTED_NS + 100 * ms,
        }
        for tid in (7, 8)
    ]
    states = [
        # 7 runs from 10 to 20, then sleeps until 8 wakes it at 45; 8 runs from 20 to 40, is preempted, and runs from 50 on.
        {"t": 0.005, "dur_ns": 5 * ms, "tid": 7, "pid": 7, **away},
        {"t": 0.01, "dur_ns": 10 * ms, "tid": 8, "pid": 7, **away},
        {
            "t": 0.02,
            "dur_ns": 40 * ms,
            "tid": 7,
            "pid": 7,
            **away,
            "wait_ns": 25 * ms,
            "waker_task_id": 1,
            "state": "sleeping",
            "cpu": 1,
        },
        {"t": 0.04, "dur_ns": 10 * ms, "tid": 8, "pid": 7, **away},
    ]
    session = open_session(maker.make([], processes=lives, run_states=states, critical_path=[]))
    bundles = [
        packet.ftrace_events for packet in perfetto(session).packet if packet.HasField("ftrace_events")
    ]
    found = [
        (
            bundle.cpu,
            event.timestamp // ms,
            event.sched_switch.prev_pid,
            event.sched_switch.prev_state,
            event.sched_switch.next_pid,
        )
        for bundle in bundles
        for event in bundle.event
        if event.HasField("sched_switch")
    ]
    assert found == [
        (0, 10, 0, 0, 7),
        (0, 20, 7, 1, 8),
        (0, 40, 8, 0, 0),
        (0, 50, 0, 0, 8),
        (0, 100, 8, 16, 0),
        (1, 60, 0, 0, 7),
        (1, 100, 7, 16, 0),
    ]
    [woken] = [event for bundle in bundles for event in bundle.event if event.HasField("sched_waking")]
    assert (woken.timestamp // ms, woken.pid, woken.sched_waking.pid) == (45, 8, 7)


def test_perfetto_shows_path_and_bytes(session: Session) -> None:
    [event] = [
        packet.track_event
        for packet in perfetto(session).packet
        if any(note.string_value == "/tmp/日本" for note in packet.track_event.debug_annotations)
    ]
    assert list(event.categories) == ["read"]


def test_chrome_has_every_call(session: Session) -> None:
    events = json.loads(written(session, "chrome"))["traceEvents"]
    calls = [event for event in events if event["ph"] in "Xi"]
    rows = session.fetch("SELECT task_id, call, ts_ns, dur_ns FROM calls")
    expected = [
        (life, call, (ts - STARTED_NS) / 1000, None if dur is None else dur / 1000)
        for life, call, ts, dur in rows
    ]
    key = str
    assert sorted([(e["tid"], e["name"], e["ts"], e.get("dur")) for e in calls], key=key) == sorted(
        expected, key=key
    )
    named = {event["tid"] for event in events if event["name"] == "thread_name"}
    assert named == {event["tid"] for event in calls}


@pytest.mark.parametrize("format_", ["chrome", "perfetto"])
def test_of_too_many_calls_the_longest_are_kept(session: Session, tmp_path: Path, format_: str) -> None:
    done = write_file(session, format_, tmp_path / "out", 1)
    assert (done.shown, done.total) == (1, session.fetch("SELECT count(*) FROM calls")[0][0])
    if format_ == "perfetto":
        assert [row[3] for row in slices(perfetto(session, 1))] == [1_234_567]


def test_a_name_that_ends_in_gz_is_packed(session: Session, tmp_path: Path) -> None:
    write_file(session, "chrome", tmp_path / "out.json.gz", 1000)
    assert gzip.decompress((tmp_path / "out.json.gz").read_bytes()) == written(session, "chrome")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_what_cannot_be_written_is_said(session: Session, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        write_file(session, "chrome", tmp_path / "no" / "out", 10)
    with pytest.raises(UserError, match="No space left"):
        write_file(session, "chrome", Path("/dev/full"), 10)
    assert Path("/dev/full").is_char_device()
    with pytest.raises(UserError, match="no format"):
        write_file(session, "svg", tmp_path / "out", 10)


def test_numbers_of_all_sizes_survive_the_encoding() -> None:
    assert varint(0) == b"\x00"
    assert varint(300) == b"\xac\x02"
    packet = schema.TracePacket()
    packet.ParseFromString(message([(8, (1 << 63) - 1), (10, 1)]))
    assert packet.timestamp == (1 << 63) - 1
    note = schema.DebugAnnotation()
    note.ParseFromString(message([(10, "x"), (4, -5)]))
    assert note.int_value == -5
