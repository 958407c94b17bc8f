"""System calls that are added up in the kernel: the same calls, recorded one by one, are the oracle."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from recorders import recorder_or_skip
from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Recording

# Two processes with known calls; what fails, what waits, and what is done often.
# A sleep until a time, as Python's own, is shorter where the program was not on a CPU just before it.
PROGRAM = """
import ctypes, os
libc = ctypes.CDLL(None)
for _ in range(1000):
    os.getppid()
for _ in range(50):
    try:
        os.open("/nonexistent/file", 0)
    except OSError:
        pass
if os.fork() == 0:
    for _ in range(20):
        libc.usleep(10_000)
    os._exit(0)
os.wait()
"""


@pytest.fixture
def session(native: Path, tmp_path: Path, library: Library):
    recorder_or_skip(native, "kernel")
    command = [str(native), "record", "-o", str(tmp_path / "rec"), "--what", "io,syscalls", "--"]
    subprocess.run([*command, sys.executable, "-c", PROGRAM], check=True, capture_output=True)
    with Session(Recording.open(tmp_path / "rec"), library) as session:
        yield session


def test_sums_are_those_of_the_calls(session: Session) -> None:
    single = session.fetch(
        "SELECT c.process_id, c.call, count(*), count(c.errno), sum(c.dur_ns) FROM calls AS c "
        "WHERE c.dur_ns IS NOT NULL AND c.via IS NULL GROUP BY ALL ORDER BY ALL"
    )
    added = session.fetch(
        "SELECT task_id, call, sum(number), sum(failed), sum(time_ns) FROM syscall_times GROUP BY ALL ORDER BY ALL"
    )
    assert [row[:4] for row in added] == [row[:4] for row in single]
    assert [row[2] for row in added if row[1] == "clock_nanosleep"] == [20]
    # When each of the two programs takes the time is left to the kernel, so only waits can be compared.
    [slept] = [row[4] for row in added if row[1] == "clock_nanosleep"]
    assert slept >= 20 * 10_000_000


def test_times_lie_in_their_classes(session: Session) -> None:
    outside = "number * lower_ns > time_ns OR time_ns >= number * upper_ns"
    assert session.fetch(f"SELECT * FROM syscall_times WHERE {outside}") == []
    slept = "SELECT min(lower_ns) > 9_000_000 FROM syscall_times WHERE call = 'clock_nanosleep'"
    assert session.fetch(slept) == [(True,)]


def test_a_flight_recorder_without_calls_knows_how_long_they_take(
    native: Path, tmp_path: Path, library: Library
) -> None:
    recorder_or_skip(native, "kernel")
    flight = [str(native), "flight"]
    name = ["--name", f"test-{os.getpid()}-syscalls"]
    words = [*name, "--what", "sched,syscalls", "--keep", "60s"]
    subprocess.run([*flight, "start", *words], check=True, capture_output=True)
    try:
        program = subprocess.Popen([sys.executable, "-c", PROGRAM])
        assert program.wait() == 0
        dump = [*flight, "dump", *name, "-o", str(tmp_path / "rec")]
        subprocess.run(dump, check=True, capture_output=True)
    finally:
        subprocess.run([*flight, "stop", *name], check=True, capture_output=True)
    with Session(Recording.open(tmp_path / "rec"), library) as session:
        assert "calls" not in session.recording.tables
        calls = {
            row["call"]: (row["calls"], row["failed"])
            for row in session.run("syscalls/latency").dicts()
            if row["process"].endswith(f" {program.pid}")
        }
    assert calls["getppid"] == (1000, 0)
    assert calls["openat"][1] >= 50
