"""A recorder that is killed, or whose disk is full: the command goes on, and what was recorded can be read."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import fork_server
import pytest
from recorders import Recorder, recorder_or_skip
from small_disk import resize, small_disk
from sysdock.library import Library
from sysdock.recording import Recording, connect
from waiting import wait_for

PROGRAM = Path(__file__).resolve().parents[3] / "testdata" / "programs" / "counter.c"
KILLS = int(os.environ.get("SYSDOCK_KILLS", "20"))
# What may be missing before a kill [s]. A machine that is busy with other tests may need some more.
MISSING = 1.0
RECORD = 16


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, compiled."""
    path = tmp_path_factory.mktemp("compiled") / PROGRAM.stem
    subprocess.run(["gcc", "-O1", "-o", path, PROGRAM], check=True)
    return path


@pytest.fixture
def kernel(native: Path) -> Recorder:
    """The kernel recorder: strace's checkpoints are further apart, see test_record.py."""
    return recorder_or_skip(native, "kernel")


def rows(recording: Path, sql: str, table: str = "calls") -> list[tuple]:
    """Rows as every analysis sees them."""
    return connect(Recording.open(recording), Library(), [table]).execute(sql).fetchall()


def size(path: Path) -> int:
    """Size of a file that may not exist yet [B]."""
    return path.stat().st_size if path.exists() else 0


def salvage(native: Path, out: Path) -> None:
    """`sysdock-native salvage`."""
    done = subprocess.run([native, "salvage", out], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "number", [pytest.param(number, marks=pytest.mark.more if number % 8 else ()) for number in range(KILLS)]
)
def test_a_killed_recorder_has_all_but_the_last_second_and_the_command_does_not_notice(
    kernel: Recorder, counter: Path, tmp_path: Path, manifest: Callable[[Path], dict], number: int
) -> None:
    out, file = tmp_path / "rec", tmp_path / "file"
    stop, done = (file.with_name(f"file.{word}") for word in ("stop", "done"))
    recorder = subprocess.Popen(
        kernel.command(out, counter, file, str(10**12), "20000"),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        wait_for(lambda: size(file), "the first write")
        time.sleep(random.Random(number).uniform(0, 2.5))
        before = time.time_ns()
        recorder.kill()
        assert recorder.wait(600) == -signal.SIGKILL
        at_the_kill = size(file)
        wait_for(lambda: size(file) > at_the_kill + 100 * RECORD, "writes behind the kill")
    finally:
        stop.touch()
        wait_for(done.exists, "the end of the command")
    assert recorder.stderr.read() == b""
    written = struct.iter_unpack("<qq", file.read_bytes())
    times = [time_ns for time_ns, _ in written]
    wait_for(lambda: done.read_text(), "the last word of the command")
    assert int(done.read_text()) == len(times)

    salvage(kernel.native, out)
    stated = manifest(out)
    assert (stated["complete"], stated["recorder"], stated["lost_events"]) == (False, "kernel", 0)
    sql = f"SELECT offset_bytes, ts_ns FROM calls WHERE call = 'pwrite64' AND path = '{file}' AND transferred_bytes = {RECORD} ORDER BY ts_ns"
    found = rows(out, sql)
    numbers = [offset // RECORD for offset, _ in found]
    assert numbers == sorted(set(numbers))
    # Later events of one CPU may be present, and those of another missing.
    due = [number for number, time_ns in enumerate(times) if time_ns < before - MISSING * 1e9]
    assert set(due) - set(numbers) == set()
    # Each began right behind the moment that the program noted; clocks are compared twice a second.
    gaps = [ts_ns - times[offset // RECORD] for offset, ts_ns in found]
    assert all(gap > -1_000_000 for gap in gaps), min(gaps)
    if due:
        assert rows(out, "SELECT execs FROM processes", "processes") == [(1,)]
    assert not (out / "spool").exists()


def test_every_verb_says_how_many_events_of_a_killed_recorder_wait(
    native: Path, kernel: Recorder, counter: Path, tmp_path: Path
) -> None:
    out, file = tmp_path / "rec", tmp_path / "file"
    recorder = subprocess.Popen(
        kernel.command(out, counter, file, str(10**12), "20000"), stdin=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: size(out / "spool") > 10_000, "the first events")
        recorder.kill()
        recorder.wait(600)
    finally:
        file.with_name("file.stop").touch()
        wait_for(file.with_name("file.done").exists, "the end of the command")
    waiting = int(
        subprocess.run([native, "salvage", "--dry-run", out], capture_output=True, check=True).stdout
    )
    for verb in ("info", "diagnose"):
        done = fork_server.run(verb, out)
        assert f"{out}: {waiting:,} events are not in the tables, as the recorder was killed" in done.stderr
    salvage(native, out)
    assert 0 < json.loads((out / "recording.json").read_text())["captures"][0]["total"] == waiting


def test_a_salvaged_recording_cannot_be_salvaged_again_and_stays(
    kernel: Recorder, counter: Path, tmp_path: Path
) -> None:
    out, file = tmp_path / "rec", tmp_path / "file"
    recorder = subprocess.Popen(
        kernel.command(out, counter, file, "60000", "20000"), stdin=subprocess.DEVNULL
    )
    wait_for(lambda: size(file) > 2000 * RECORD, "writes")
    time.sleep(1.2)
    recorder.kill()
    recorder.wait(600)
    file.with_name("file.stop").touch()
    salvage(kernel.native, out)
    before = rows(out, "SELECT count(*) FROM calls")
    assert before[0][0] > 1000
    subprocess.run([kernel.native, "salvage", out], capture_output=True, timeout=600)
    assert rows(out, "SELECT count(*) FROM calls") == before


def test_a_recorder_that_lives_cannot_be_salvaged(kernel: Recorder, tmp_path: Path) -> None:
    out = tmp_path / "rec"
    recorder = subprocess.Popen(
        kernel.command(out, "sh", "-c", "echo ready; read line"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert recorder.stdout.readline() == "ready\n"
    done = subprocess.run([kernel.native, "salvage", out], capture_output=True, text=True, timeout=600)
    assert done.returncode == 2
    assert "hint: " in done.stderr
    recorder.communicate("\n", timeout=600)
    assert recorder.returncode == 0
    assert json.loads((out / "recording.json").read_text())["complete"] is True


def groups() -> set[Path]:
    """Control groups of recorders."""
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    found = [Path(mount[4]) for mount in mounts if "cgroup2" in mount]
    return {group for folder in found for group in folder.rglob("sysdock-*") if group.is_dir()}


@pytest.mark.parametrize("still", [False, True])
def test_the_control_group_of_a_killed_recorder_goes_and_its_command_goes_on(
    kernel: Recorder, tmp_path: Path, still: bool
) -> None:
    before = groups()
    options = ("--no-loss",) if still else ()
    recorder = subprocess.Popen(
        kernel.command(tmp_path / "killed", "sh", "-c", "echo ready; read line; echo on", options=options),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert recorder.stdout.readline() == "ready\n"
    [group] = groups() - before or [None]
    if group is None:
        pytest.skip("this process may not make control groups here")
    if still:
        # As the recorder does where events come too fast.
        (group / "cgroup.freeze").write_text("1")
    recorder.kill()
    recorder.wait(600)
    wait_for(lambda: not group.exists(), "the end of the control group")
    recorder.stdin.close()
    assert recorder.stdout.read() == "on\n"


def test_a_killed_strace_ends_the_recording_and_not_the_command(
    native: Path, tmp_path: Path, query: Callable[..., list[tuple]], manifest: Callable
) -> None:
    script = "echo ready; read line; cat /etc/hostname >/dev/null; exit 7"
    recorder, strace = started(native, tmp_path / "rec", script)
    os.kill(strace, signal.SIGKILL)
    wait_for(
        lambda: children_of(recorder) not in ([], [strace]),
        "the command is a child of the recorder",
    )
    _, said = recorder.communicate("\n", timeout=600)
    assert recorder.returncode == 7, said
    assert "strace was killed (signal 9)" in said
    stated = manifest(tmp_path / "rec")
    assert (stated["complete"], stated["exit_code"]) == (False, None)
    ends = "SELECT count(*) > 0, count(*) FILTER (WHERE call = 'exit_group') FROM calls"
    assert query(tmp_path / "rec", ends) == [(True, 0)]


def test_a_strace_that_is_killed_after_the_command_ended_leaves_its_status(
    native: Path, tmp_path: Path, manifest: Callable
) -> None:
    """What the command left in the background was still traced."""
    script = "exec 3<&0; (read line <&3) & echo ready; exit 7"
    recorder, strace = started(native, tmp_path / "rec", script)
    of_strace = Path(f"/proc/{strace}/task/{strace}/children")
    # The command is reaped, and what it left is a child of the recorder.
    wait_for(lambda: not of_strace.read_text().split() and len(children_of(recorder)) == 2, "its end")
    os.kill(strace, signal.SIGKILL)
    _, said = recorder.communicate("\n", timeout=600)
    assert recorder.returncode == 7, said
    stated = manifest(tmp_path / "rec")
    assert (stated["complete"], stated["exit_code"]) == (False, 7)


def started(native: Path, out: Path, script: str) -> tuple[subprocess.Popen, int]:
    """A recorder by strace, whose command has said `ready`, and the number of strace."""
    recorder = subprocess.Popen(
        recorder_or_skip(native, "strace").command(out, "sh", "-c", script),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert recorder.stdout.readline() == "ready\n"
    [strace] = children_of(recorder, "strace")
    return recorder, strace


def children_of(recorder: subprocess.Popen, name: str | None = None) -> list[int]:
    """Children of the recorder with this name, or all but the one that stands for its process group."""
    pids = Path(f"/proc/{recorder.pid}/task/{recorder.pid}/children").read_text().split()
    names = {}
    for pid in pids:
        # One that ends meanwhile is no child any more.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            names[int(pid)] = Path(f"/proc/{pid}/comm").read_text().strip()
    return [pid for pid in names if names[pid] == (name or names[pid]) != "sysdock-witness"]


def test_a_command_that_is_killed_below_strace_is_recorded_to_its_end(
    native: Path, tmp_path: Path, manifest: Callable
) -> None:
    done = recorder_or_skip(native, "strace").record(tmp_path / "rec", "sh", "-c", "kill -9 $$")
    assert (done.returncode, done.stderr) == (-9, "")
    stated = manifest(tmp_path / "rec")
    assert (stated["complete"], stated["exit_signal"]) == (True, "SIGKILL")


# A full disk


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    with small_disk(tmp_path / "disk", 1 << 20) as folder:
        yield folder


def test_a_full_disk_ends_the_recording_and_not_the_command(
    recorder: Recorder, counter: Path, tmp_path: Path, full: Path
) -> None:
    file = tmp_path / "file"
    fill = 0 if recorder.name == "kernel" else 1_000_000
    (full / "other").write_bytes(bytes(fill))
    command = ["sh", "-c", '"$@"; exit 37', "sh", str(counter), str(file), "60000", "0"]
    done = recorder.record(full / "rec", *command)
    assert size(file) == 60_000 * RECORD
    assert file.with_name("file.done").read_text() == "60000\n"
    assert done.returncode == 37
    assert "No space left on device" in done.stderr or "full" in done.stderr
    assert "hint: " in done.stderr


def test_what_was_recorded_until_the_disk_was_full_can_be_read(
    kernel: Recorder, counter: Path, tmp_path: Path, full: Path, manifest: Callable[[Path], dict]
) -> None:
    """The events take all of the disk, so that tables of them find room elsewhere, or when room was made."""
    file = tmp_path / "file"
    kernel.record(full / "rec", counter, file, "60000", "0")
    resize(full, "size=64m")
    if (full / "rec" / "spool").exists():
        salvage(kernel.native, full / "rec")
    stated = manifest(full / "rec")
    # The reason was not written down where there was no room for it.
    assert (stated["complete"], stated["ended_by"]) in [(False, "write error"), (False, "interrupted")]
    where = f"FROM calls WHERE call = 'pwrite64' AND path = '{file}'"
    offsets = [offset for (offset,) in rows(full / "rec", f"SELECT offset_bytes {where} ORDER BY ts_ns")]
    assert len(offsets) > 1000
    assert offsets == [RECORD * i for i in range(len(offsets))]
