"""Filters: what each leaves in."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from make_recording import STARTED_NS, RecordingMaker
from sysdock.errors import UserError
from sysdock.recording import Filters, Recording, quote
from sysdock.recording.filters import split_list, time_ns
from sysdock.sections.description import start_time
from sysdock.sentences import say

ODD = '/tmp/it\'s "<script>"\n,[x]*'
ALL = ["openat", "read", "read", "openat", "write", "getpid", "read", "newfstatat"]


@pytest.fixture
def calls_with(maker: RecordingMaker, open_session):
    """Names of the calls that filters leave, in order of time."""
    folder = maker.make()

    def calls(**filters: object) -> list[str]:
        rows = open_session(folder, **filters).fetch("SELECT call FROM calls ORDER BY ts_ns")
        return [call for (call,) in rows]

    return calls


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ({}, ALL),
        # Calls without a path (getpid) are dropped by --file.
        ({"file": "/usr/share/doc/a.txt"}, ["openat", "read", "read"]),
        ({"file": "a.txt"}, ["openat", "read", "read"]),
        ({"file": "a.txt,libc.so"}, ["openat", "read", "read", "openat"]),
        ({"file": "/usr/*"}, ["openat", "read", "read", "openat", "newfstatat"]),
        ({"file": "*.so"}, ["openat"]),
        ({"file": "lib?.so"}, ["openat"]),
        ({"file": "lib[ab].so"}, []),
        ({"file": "*pipe*"}, ["read"]),
        ({"file": "pipe:\\[42\\]"}, ["read"]),
        ({"file": "share"}, []),
        ({"file": quote(ODD)}, ["write"]),
        ({"file": "/tmp/it's*<script>*"}, ["write"]),
        ({"file": "'; DROP TABLE calls; --"}, []),
        # and kept by the excludes.
        ({"exclude_dir": "/usr/share"}, ["openat", "write", "getpid", "read"]),
        ({"exclude_dir": "/usr/share/doc/"}, ["openat", "write", "getpid", "read"]),
        ({"exclude_dir": "/usr/sha"}, ALL),
        ({"exclude_dir": "doc,lib"}, ["write", "getpid", "read"]),
        ({"exclude_dir": "/usr/*"}, ["write", "getpid", "read"]),
        ({"exclude_dir": "/"}, ["getpid", "read"]),
        ({"exclude_suffix": ".so,.txt"}, ["write", "getpid", "read", "newfstatat"]),
        ({"exclude_suffix": "\\*"}, [call for call in ALL if call != "write"]),
        ({"file": "/usr/*", "exclude_suffix": ".so"}, ["openat", "read", "read", "newfstatat"]),
        ({"call": "read,write"}, ["read", "read", "write", "read"]),
        ({"call": "new*"}, ["newfstatat"]),
        ({"process": "cat"}, ["write", "getpid", "read"]),
        ({"process": "100"}, ["openat", "read", "read", "openat", "newfstatat"]),
        ({"process": "cat,100"}, ALL),
        ({"from_": "0.3"}, ALL[3:]),
        ({"to": "0.3"}, ALL[:3]),
        ({"from_": ".1", "to": "0.299999999"}, ["read", "read"]),
        ({"only_errors": True}, ["openat"]),
        # The read that never returned is neither.
        ({"only_ok": True}, ["openat", "read", "read", "write", "getpid", "newfstatat"]),
    ],
)
def test_what_is_left(calls_with, filters: dict, left: list[str]) -> None:
    assert calls_with(**filters) == left


def test_a_long_program_name_is_cut_as_the_kernel_does(maker: RecordingMaker, open_session) -> None:
    folder = maker.make([{"call": "read", "comm": "a-very-long-nam"}])
    session = open_session(folder, process="a-very-long-name-indeed")
    assert session.fetch("SELECT count(*) FROM calls") == [(1,)]


def test_all_questions_see_the_filter(maker: RecordingMaker, open_session) -> None:
    session = open_session(maker.make(), file="a.txt", call="read")
    assert session.fetch("SELECT count(*) FROM calls") == [(2,)]
    assert session.fetch("SELECT path, kind, comm, count(*) FROM calls GROUP BY ALL") == [
        ("/usr/share/doc/a.txt", "file", "tar", 2)
    ]
    # Side tables stay whole.
    assert session.fetch("SELECT count(*) FROM paths") == [(5,)]


COPIES = [
    {
        "t": 0.0,
        "call": "sendfile",
        "class": "copy",
        "path": "/a/in",
        "to_path": "/b/out",
        "transferred_bytes": 1,
    },
    {
        "t": 0.1,
        "call": "splice",
        "class": "copy",
        "path": "/a/in",
        "to_path": "pipe:[1]",
        "transferred_bytes": 1,
    },
    {"t": 0.2, "call": "read", "path": "/a/in", "transferred_bytes": 1},
]


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ({"file": "/a/in"}, ["sendfile", "splice", "read"]),
        ({"file": "/b/out"}, ["sendfile"]),
        ({"file": "pipe*,/b/*"}, ["sendfile", "splice"]),
        # Excludes look at the file that is read.
        ({"exclude_dir": "/b"}, ["sendfile", "splice", "read"]),
        ({"exclude_dir": "/a"}, []),
    ],
)
def test_a_copy_is_kept_by_either_file(maker: RecordingMaker, open_session, filters: dict, left) -> None:
    session = open_session(maker.make(COPIES), **filters)
    assert [call for (call,) in session.fetch("SELECT call FROM calls ORDER BY ts_ns")] == left


def test_a_process_id_stands_for_all_its_lives(maker: RecordingMaker, open_session) -> None:
    life = {"pid": 7, "tid": 7, "depth": 0, "execs": 0, "calls": 1}
    lives = [
        {**life, "tree_order": 0, "start_ts_ns": STARTED_NS},
        {**life, "tree_order": 1, "start_ts_ns": STARTED_NS + 5_000_000_000},
        {**life, "tid": 8, "tree_order": 2, "start_ts_ns": STARTED_NS},
    ]
    calls = [
        {"t": 0, "call": "first", "pid": 7, "tid": 7},
        {"t": 6, "call": "second", "pid": 7, "tid": 7},
        {"t": 7, "call": "third", "pid": 7, "tid": 8},
        {"t": 8, "call": "other", "pid": 9, "tid": 9},
    ]
    mapping = {"t": 1, "address": 1, "length_bytes": 1, "protection": "PROT_READ", "shared": False}
    mappings = [{**mapping, "path": f"/{pid}", "pid": pid, "tid": pid} for pid in (7, 9)]
    folder = maker.make(calls, processes=lives, mappings=mappings)
    session = open_session(folder, process="7")
    found = session.fetch("SELECT call, task_id FROM calls ORDER BY ts_ns")
    assert found == [("first", 0), ("second", 1), ("third", 2)]
    assert session.fetch("SELECT count(*) FROM processes") == [(3,)]
    # A table of events that lacks the program's name can still be filtered by process ids.
    assert session.fetch("SELECT path FROM mappings") == [("/7",)]
    assert session.notes == []


def test_filters_apply_where_the_columns_are(maker: RecordingMaker, open_session) -> None:
    processes = [
        {"pid": 100, "tid": 100, "start_ts_ns": STARTED_NS, "comm_id": 0, "execs": 1, "calls": 1},
        {"pid": 200, "tid": 200, "start_ts_ns": STARTED_NS, "comm_id": 1, "execs": 1, "calls": 1},
    ]
    for number, process in enumerate(processes):
        process.update(tree_order=number, depth=0)
    session = open_session(maker.make(processes=processes), process="cat", file="a.txt")
    assert session.fetch("SELECT pid FROM processes") == [(200,)]
    [note] = session.notes
    assert say(note, "en") == "--file cannot be applied to the table `processes`"
    assert say(note, "ja") == "--file は表 `processes` には適用できません"
    session.fetch("SELECT * FROM environment")
    assert len(session.notes) == 1


@pytest.mark.parametrize(
    "filters",
    [{"file": "nowhere"}, {"process": "nobody"}, {"process": "4711"}, {"call": "opn"}, {"call": "opn*"}],
)
def test_a_filter_that_matches_nothing_says_so(maker: RecordingMaker, open_session, filters: dict) -> None:
    [note] = open_session(maker.make(), **filters).notes
    [given] = filters.values()
    assert given in say(note, "en")
    assert given in say(note, "ja")


def test_contradictions_and_empty_filters_are_refused() -> None:
    with pytest.raises(UserError, match="leave nothing"):
        Filters(only_ok=True, only_errors=True)
    with pytest.raises(UserError, match="an empty filter"):
        Filters(file="")
    with pytest.raises(UserError, match="an empty filter"):
        Filters(exclude_suffix=",")


def test_comma_lists() -> None:
    assert split_list("a,b\\,c,,d\\*") == ["a", "b,c", "d\\*"]


def test_describe_is_what_was_typed() -> None:
    filters = Filters(file="a b", from_="1", only_ok=True)
    assert filters.active
    assert filters.describe() == "--file 'a b' --from 1 --only-ok"
    assert not Filters().active


class TestTimes:
    """--from and --to."""

    def recording(self, maker: RecordingMaker, kind: str = "epoch") -> Recording:
        return Recording.open(maker.make(clock={"kind": kind, "has_durations": True}))

    def test_seconds_are_exact(self, maker: RecordingMaker) -> None:
        assert time_ns("0.123456789", "--from", self.recording(maker)) == STARTED_NS + 123_456_789

    def test_time_stamps(self, maker: RecordingMaker, monkeypatch: pytest.MonkeyPatch) -> None:
        recording = self.recording(maker)
        assert time_ns("2023-11-14T22:13:20Z", "--from", recording) == STARTED_NS
        assert time_ns("2023-11-15T07:13:20+09:00", "--from", recording) == STARTED_NS
        monkeypatch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        try:
            assert time_ns("2023-11-15 07:13:20.5", "--from", recording) == STARTED_NS + 500_000_000
        finally:
            monkeypatch.undo()
            time.tzset()

    def test_a_time_of_day_is_that_of_this_machine(
        self, maker: RecordingMaker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        recording = self.recording(maker, "time_of_day")
        monkeypatch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        try:
            assert time_ns("2023-11-15 07:13:20", "--from", recording) == STARTED_NS
            assert start_time(recording) == "2023-11-15 07:13:20 (date inferred)"
        finally:
            monkeypatch.undo()
            time.tzset()

    def test_a_log_without_a_date_refuses_time_stamps(self, maker: RecordingMaker) -> None:
        with pytest.raises(UserError, match="has no date"):
            time_ns("2023-11-14T22:13:20Z", "--until", self.recording(maker, "relative"))

    def test_nonsense_is_refused(self, maker: RecordingMaker) -> None:
        with pytest.raises(UserError, match="is not a time") as caught:
            time_ns("soon", "--from", self.recording(maker))
        assert caught.value.place == "--from"


def test_a_folder_with_odd_characters(maker: RecordingMaker, open_session, tmp_path: Path) -> None:
    session = open_session(maker.make(name="it's [a]*\n?"))
    assert session.fetch("SELECT count(path) FROM calls") == [(7,)]
