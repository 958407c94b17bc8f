"""Where the time went, in recordings of which only calls are known (time/calls)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Recording

Log = Callable[[str], Session]
# A make that runs two jobs at a time: it waits for the longer one, of which the end is what counts.
PARALLEL = """\
10  1700000000.000000 execve("/usr/bin/make", ["make"], 0x1 /* 2 vars */) = 0 <0.001000>
10  1700000000.010000 vfork( <unfinished ...>
11  1700000000.010100 execve("/bin/long", ["long"], 0x1 /* 2 vars */) = 0 <0.000900>
10  1700000000.011000 <... vfork resumed>) = 11 <0.001000>
10  1700000000.012000 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD) = 12 <0.000100>
10  1700000000.013000 wait4(-1,  <unfinished ...>
12  1700000000.014000 execve("/bin/short", ["short"], 0x1 /* 2 vars */) = 0 <0.001000>
11  1700000000.020000 fsync(3</a>) = 0 <0.500000>
12  1700000000.020000 clock_nanosleep(CLOCK_REALTIME, 0, {tv_sec=0, tv_nsec=100000000}, NULL) = 0 <0.100000>
12  1700000000.130000 +++ exited with 0 +++
10  1700000000.131000 <... wait4 resumed>NULL, 0, NULL) = 12 <0.118000>
10  1700000000.132000 wait4(-1,  <unfinished ...>
11  1700000000.600000 +++ exited with 0 +++
10  1700000000.601000 <... wait4 resumed>NULL, 0, NULL) = 11 <0.469000>
10  1700000000.602000 +++ exited with 0 +++
"""


@pytest.fixture
def log(native: Path, tmp_path: Path, library: Library) -> Iterator[Log]:
    sessions = []

    def imported(text: str) -> Session:
        (tmp_path / "log").write_text(text)
        command = [str(native), "import", str(tmp_path / "log"), "-o", str(tmp_path / "rec")]
        subprocess.run(command, check=True, capture_output=True)
        sessions.append(Session(Recording.open(tmp_path / "rec"), library))
        return sessions[-1]

    yield imported
    for session in sessions:
        session.close()


def whole(session: Session) -> dict[str, int]:
    """Microseconds of each part of the command."""
    rows = session.run("time/where").dicts()
    return {row["part"]: row["time_ns"] // 1000 for row in rows if row["process"] is None}


def test_waits_for_children_are_what_the_child_did_meanwhile(log: Log) -> None:
    session = log(PARALLEL)
    parts = whole(session)
    assert sum(parts.values()) == 602_000
    # During the first wait the path is in `short`, during the second in the rest of `long`.
    assert parts["waiting: timer"] == 100_000
    assert parts["in calls: writing to disk"] == 520_000 - 132_000
    # From the end of a job until make knew of it.
    assert parts["waiting: child process"] == 1_000 + 1_000
    assert parts["in calls: processes"] == 1_000 + 900 + 100 + 1_000


def test_the_parts_of_each_thread_add_up_to_its_time(log: Log) -> None:
    session = log(PARALLEL)
    spans = dict(session.fetch("SELECT tid, end_ts_ns - start_ts_ns FROM processes"))
    times = dict.fromkeys(spans, 0)
    for row in session.run("time/where").dicts():
        if row["process"] is not None:
            times[row["tid"]] += row["time_ns"]
    assert times == spans


def test_a_call_that_never_returned_lasts_until_the_end(log: Log) -> None:
    session = log(
        '1  1700000000.000000 execve("/bin/cat", ["cat"], 0x1 /* 2 vars */) = 0 <1.000000>\n'
        "1  1700000002.000000 read(0</dev/pts/1>,  <unfinished ...>\n"
        "1  1700000007.000000 +++ killed by SIGKILL +++\n"
    )
    parts = whole(session)
    assert parts["in calls: file data"] == 5_000_000
    assert sum(parts.values()) == 7_000_000


def test_processes_from_outside_have_no_whole(log: Log) -> None:
    session = log(
        "1  1700000000.000000 getpid() = 1 <0.000100>\n2  1700000000.500000 getpid() = 2 <0.000100>\n"
    )
    assert whole(session) == {}
    assert {row["process"] for row in session.run("time/where").dicts()} == {"? 1", "? 2"}


@pytest.mark.parametrize(
    "line",
    [
        "1  1700000000.000000 getpid() = 1",
        "1  getpid() = 1 <0.000100>",
    ],
    ids=["durations", "clock"],
)
def test_without_times_there_are_no_rows(log: Log, line: str) -> None:
    session = log(f"{line}\n{line}\n")
    assert session.run("time/where").rows() == []
