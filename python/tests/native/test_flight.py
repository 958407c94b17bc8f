"""The flight recorder: what it writes is a recording like any other, and says what happened before."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from recorders import recorder_or_skip
from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Recording
from sysdock.recording.manifest import NOT_REQUESTED
from waiting import wait_for

# Opens a file, begins to sleep in a child, and reads as often as standard input says.
READER = """
import os, sys, time
if os.fork() == 0:
    time.sleep(1000)
fd = os.open(sys.argv[1], os.O_RDONLY)
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        os.pread(fd, 1, 0)
    print("done", flush=True)
"""
# What `record` records if nothing is named.
USUAL = ("--what", "io,uring,faults,page_io,sched,cpu,system")
# A trigger is about the whole machine, where other tests run: each test has a signal that no other test sends.
KILLED = "import os, signal; os.kill(os.getpid(), signal.{})"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


class Flight:
    """A flight recorder under a name of its own."""

    def __init__(self, native: Path, name: str) -> None:
        self.native, self.name = native, name

    def run(self, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.native), "flight", verb, "--name", self.name, *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)

    def start(self, *words: str) -> None:
        done = self.run("start", *words)
        assert done.returncode == 0, done.stderr

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = json.loads(self.run("status", "--format", "json").stdout)
        return status

    def dump(self, folder: Path, *words: str) -> Session:
        done = self.run("dump", "-o", str(folder), *words)
        assert done.returncode == 0, done.stderr
        return Session(Recording.open(folder), Library())

    def written(self, number: int) -> list[dict[str, str]]:
        """What triggers have written, as soon as so many recordings are complete."""
        return until(lambda: [one for one in self.status()["dumps"] if one["state"] == "complete"], number)


def until(look: Callable[[], list[dict[str, str]]], number: int) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []

    def are_there() -> bool:
        found[:] = look()
        return len(found) >= number

    wait_for(are_there, f"{number} recordings", every_s=0.1)
    return found


@pytest.fixture
def flight(native: Path, tmp_path: Path) -> Iterator[Flight]:
    recorder_or_skip(native, "kernel")
    flight = Flight(native, f"test-{os.getpid()}-{tmp_path.name[-20:]}")
    try:
        yield flight
    finally:
        flight.run("stop")


@contextlib.contextmanager
def reading(path: Path) -> Iterator[Callable[[int], None]]:
    """A process that has opened `path`; returns what has it read so many times."""
    path.write_text("something")
    command = [sys.executable, "-c", READER, str(path)]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, start_new_session=True, **streams) as process:  # type: ignore[call-overload]
        assert process.stdout.readline() == "ready\n"

        def read(times: int) -> None:
            process.stdin.write(f"{times}\n")
            process.stdin.flush()
            assert process.stdout.readline() == "done\n"

        try:
            yield read
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def begin_ns(session: Session) -> int:
    return int(session.recording.manifest["started_ns"])


def test_calls_are_exact_and_named_although_what_names_them_came_before(
    flight: Flight, tmp_path: Path
) -> None:
    path = tmp_path / "opened-before"
    flight.start("--keep", "1s", *USUAL)
    with reading(path) as read:
        opened_ns = time.time_ns()
        for attempt in range(30):
            time.sleep(2)
            read(1234)
            session = flight.dump(tmp_path / f"rec{attempt}")
            if begin_ns(session) > opened_ns:
                break
    with session:
        of_file = f"FROM calls WHERE path = '{path}'"
        assert session.fetch(f"SELECT call, count(*) {of_file} GROUP BY 1") == [("pread64", 1234)]
        [(program,)] = session.fetch(
            f"SELECT DISTINCT p.command FROM processes AS p JOIN calls AS c ON c.task_id = p.task_id WHERE c.path = '{path}'"
        )
        # Its command line came when it began, before the recording does.
        assert program.startswith(f"{sys.executable} -c")
        asleep = session.fetch(
            "SELECT cause, call, min(ts_ns), max(ts_ns + dur_ns) FROM run_states AS r JOIN processes AS p "
            f"USING (task_id) WHERE p.command LIKE '%{path.name}%' AND call = 'clock_nanosleep' GROUP BY 1, 2"
        )
        begin, end = begin_ns(session), begin_ns(session) + session.recording.manifest["duration_ns"]
        # The child sleeps since before the recording, of which its sleep takes all.
        assert [row[:2] for row in asleep] == [("timer", "clock_nanosleep")]
        assert asleep[0][2] >= begin
        assert asleep[0][3] == end
        [(text,)] = session.fetch("SELECT text FROM marks")
        assert json.loads(text) == [{"code": "marks/stated", "text": "by hand"}]
        assert session.fetch("SELECT min(ts_ns) >= (SELECT min(start_ts_ns) FROM processes) FROM calls") == [
            (True,)
        ]
        assert not session.fetch("SELECT * FROM import_issues WHERE issue = 'unknown_path'")


def test_the_oldest_is_given_up_where_the_memory_is_full(flight: Flight, tmp_path: Path) -> None:
    flight.start("--keep", "60s", "--memory", "4", "--ring", "1", "--what", "io")
    with reading(tmp_path / "read") as read:
        for _ in range(60):
            read(20_000)
            held = flight.status()
            if held["events_bytes"] > 20 * held["memory_bytes"]:
                break
        read(100)
        with flight.dump(tmp_path / "rec") as session:
            [(calls, named)] = session.fetch("SELECT count(*), count(path) FROM calls WHERE call = 'pread64'")
    assert held["used_bytes"] <= held["memory_bytes"]
    assert calls == named > 20_000
    assert session.recording.manifest["complete"]


def test_a_process_that_is_killed_has_its_last_moments_written(flight: Flight, tmp_path: Path) -> None:
    written_into = ("--into", str(tmp_path / "written"), "--pause", "1h")
    flight.start(*USUAL, "--keep", "5s", "--on", "signal:SIGXCPU", *written_into)
    killed = subprocess.run([sys.executable, "-c", KILLED.format("SIGXCPU")], check=False)
    assert killed.returncode == -signal.SIGXCPU
    [written] = flight.written(1)
    assert written["cause"].endswith(": killed by SIGXCPU")
    with Session(Recording.open(Path(written["path"])), Library()) as session:
        [(text, pid)] = session.fetch("SELECT text, pid FROM marks")
        [mark] = json.loads(text)
        assert (mark["code"], mark["tid"]) == ("marks/in_thread", pid)
        assert mark["what"] == {"code": "marks/killed", "signal": "SIGXCPU"}
        ends = session.fetch(f"SELECT DISTINCT exit_signal FROM processes WHERE pid = {pid}")
        assert ends == [("SIGXCPU",)]
    # The next one comes too soon.
    subprocess.run([sys.executable, "-c", KILLED.format("SIGXCPU")], check=False)
    assert until(lambda: [{}] * flight.status()["ignored"], 1)
    assert len(flight.status()["dumps"]) == 1


def test_the_first_recordings_stay_and_later_ones_make_room(flight: Flight, tmp_path: Path) -> None:
    into = tmp_path / "written"
    limits = ("--into", str(into), "--pause", "1ms", "--most", "3")
    flight.start(*USUAL, "--keep", "2s", "--on", "signal:SIGSTKFLT", *limits)

    def complete() -> list[str]:
        return [one["path"] for one in flight.status()["dumps"] if one["state"] == "complete"]

    def crash() -> list[str]:
        before = set(complete())
        subprocess.run([sys.executable, "-c", KILLED.format("SIGSTKFLT")], check=False)
        wait_for(lambda: bool(set(complete()) - before), "a recording", every_s=0.1)
        return complete()

    first = [crash() for _ in range(3)][-1]
    (into / "another").mkdir()
    fourth = crash()
    assert fourth[:2] == [first[0], first[2]]
    fifth = crash()
    assert fifth == [first[0], fourth[2], fifth[2]]
    assert sorted(map(str, into.iterdir())) == sorted([*fifth, str(into / "another")])
    # One that was moved away is not ours to remove, and neither is what has its name now.
    Path(fifth[1]).rename(into / "moved")
    Path(fifth[1]).mkdir()
    assert crash()[1] == fifth[2]
    assert flight.status()["removed"] == 2
    assert Path(fifth[1]).is_dir()
    assert (into / "moved" / "recording.json").exists()


def test_a_slow_call_is_a_trigger(flight: Flight, tmp_path: Path) -> None:
    # A call that no other test waits in: the trigger looks at every process.
    flight.start("--on", "call/rt_sigtimedwait:300ms", "--into", str(tmp_path), "--what", "io", "--most", "1")
    subprocess.run([sys.executable, "-c", "import signal; signal.sigtimedwait([], 0.4)"], check=True)
    [written] = flight.written(1)
    assert "rt_sigtimedwait took " in written["cause"]
    with Session(Recording.open(Path(written["path"])), Library()) as session:
        [(mark_ns, task)] = session.fetch("SELECT ts_ns, task_id FROM marks")
        slow = f"call = 'rt_sigtimedwait' AND task_id = {task} AND dur_ns > 300_000_000"
        assert session.fetch(f"SELECT ts_ns + dur_ns FROM calls WHERE {slow}") == [(mark_ns,)]


def test_samples_have_functions_of_processes_that_began_before(flight: Flight, tmp_path: Path) -> None:
    flight.start("--keep", "1s", "--freq", "999", *USUAL)
    spin = "import zlib, os, time\ndata = os.urandom(1 << 16)\nprint('ready', flush=True)\nwhile True: zlib.compress(data); time.sleep(0.01)"
    with subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        began_ns = time.time_ns()
        try:
            for attempt in range(30):
                time.sleep(2)
                session = flight.dump(tmp_path / f"rec{attempt}")
                if begin_ns(session) > began_ns:
                    break
        finally:
            process.kill()
    with session:
        rows = session.fetch(
            f"SELECT s.ts_ns, st.function FROM samples AS s JOIN stacks AS st USING (stack_id) "
            f"JOIN processes AS p USING (task_id) WHERE p.pid = {process.pid} AND st.function IS NOT NULL"
        )
    assert any("deflate" in function or "compress" in function for _, function in rows)


def test_mistakes_are_said(flight: Flight, tmp_path: Path) -> None:
    assert "no flight recorder" in flight.run("dump", "-o", str(tmp_path / "rec")).stderr
    assert not (tmp_path / "rec").exists()
    assert "no flight recorder" in flight.run("status").stderr
    for words, said in [
        (["--what", "sched", "--on", "lock:1s"], "waits for locks of the kernel are not recorded"),
        (["--on", "probe"], "name a place"),
        (["--on", "nonsense"], "no such trigger"),
        (["--memory", "8", "--ring", "8"], "the ring of each CPU takes 8 MiB"),
        (["--on", "signal", "--into", "/proc/nowhere"], "/proc/nowhere"),
        (["-p", "999999999"], "no such process"),
        (["--what", "cpu"], "need system calls"),
        (["--what", "sched", "--on", "call:1s"], "waits for system calls, which are not recorded"),
    ]:
        done = flight.run("start", *words)
        assert (done.returncode, said in done.stderr) == (2, True), (words, done.stderr)
    flight.start("--what", "io")
    again = flight.run("start")
    assert again.returncode == 2
    assert "is already running" in again.stderr
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").touch()
    assert flight.run("dump", "-o", str(tmp_path / "there")).returncode == 2


def test_system_calls_may_be_left_out(flight: Flight, tmp_path: Path) -> None:
    written_into = ("--into", str(tmp_path / "written"))
    flight.start("--keep", "5s", "--what", "sched,system", "--on", "signal:SIGVTALRM", *written_into)
    assert [word for word in flight.status()["what"] if word in {"io", "sched", "system"}] == [
        "sched",
        "system",
    ]
    sleeper = f"import time; time.sleep(0.4)\n{KILLED.format('SIGVTALRM')}"
    subprocess.run([sys.executable, "-c", sleeper], check=False)
    [written] = flight.written(1)
    with Session(Recording.open(Path(written["path"])), Library()) as session:
        # A table that is missing says more than an empty one: nobody counted.
        tables = set(session.recording.tables)
        assert "calls" not in tables
        assert {"run_states", "processes", "marks", "system_metrics"} <= tables
        [(pid,)] = session.fetch("SELECT pid FROM marks")
        asleep = session.fetch(
            "SELECT cause FROM run_states JOIN processes USING (task_id) "
            f"WHERE run_states.pid = {pid} AND state = 'sleeping' AND dur_ns > 300_000_000"
        )
        assert asleep == [("timer",)]
        parts = [
            row for row in session.run("time/where").dicts() if (row["process"] or "").endswith(f" {pid}")
        ]
        assert {"on a CPU", "waiting: timer"} <= {row["part"] for row in parts}
        assert abs(sum(row["share"] for row in parts) - 1) < 0.001
        [calls] = [
            one for one in session.recording.manifest["captures"][0]["families"] if one["family"] == "calls"
        ]
        assert calls["missing"] == NOT_REQUESTED
        # No rule takes calls that were not recorded for calls that were not made.
        assert not [
            one.rule for one in session.diagnose() if one.rule.startswith("io/") and one.status == "ok"
        ]


def test_what_triggers_need_is_recorded(flight: Flight) -> None:
    for words, recorded in [
        ((), {"sched", "system", "block"}),
        (("--on", "call:1s"), {"io", "sched", "system", "block"}),
        (("--on", "lock:1s"), {"sched", "system", "block", "locks"}),
        (("--freq", "99"), {"io", "sched", "system", "block", "cpu"}),
    ]:
        flight.start(*words)
        assert {"io", "sched", "system", "block", "locks", "cpu"} & set(flight.status()["what"]) == recorded
        assert flight.run("stop").returncode == 0


def test_one_that_is_killed_leaves_room_for_the_next(flight: Flight, tmp_path: Path) -> None:
    flight.start("--what", "io")
    os.kill(flight.status()["pid"], signal.SIGKILL)
    assert until(lambda: [{}] * flight.run("status").returncode, 2)
    assert "no flight recorder" in flight.run("status").stderr
    flight.start("--what", "io")
    with flight.dump(tmp_path / "rec") as session:
        assert session.recording.manifest["complete"]


def test_another_one_may_follow_at_once(flight: Flight) -> None:
    for _ in range(3):
        flight.start("--what", "io")
        assert flight.run("stop").returncode == 0
        assert flight.run("stop").returncode == 2


def test_it_needs_rights(native: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give up rights")
    command = ["setpriv", "--reuid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]
    done = subprocess.run(
        [*command, str(native), "flight", "start"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "CAP_BPF" in done.stderr
