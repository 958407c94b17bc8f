"""Single steps of programs whose instructions are known."""

from __future__ import annotations

import functools
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sysdock.analysis import Session
from sysdock.export.files import write_file
from sysdock.library import Library
from sysdock.recording import Recording
from traced_program import Traced

HERE = Path(__file__).parent
Trace = Callable[..., Traced]
NOBODY = 65534
FUNCTIONS = """
    SELECT name AS function, count(*) AS times, min(steps) AS min_steps, max(steps) AS max_steps,
        sum(steps) AS total_steps, sum(steps_inclusive) AS inclusive_steps
    FROM function_calls JOIN traced_functions USING (function_id) GROUP BY name
"""


def traced_in(folder: Path, native: Path, *command: Path | str, **more: Any) -> Traced:
    """Steps through a command, on one CPU: to wake another one for each step takes three times as long."""
    words: list[Path | str] = ["taskset", "-c", str(min(os.sched_getaffinity(0))), native]
    words += ["itrace", "attach", "-o", folder, "--", *command]
    more = {"capture_output": True, "text": True, "timeout": 600} | more
    return Traced(native, folder, subprocess.run(words, check=False, **more))


@pytest.fixture
def trace(native: Path, tmp_path: Path) -> Trace:
    """Steps through a command."""
    return functools.partial(traced_in, tmp_path / "rec", native)


@pytest.fixture(scope="module")
def true(native: Path, tmp_path_factory: pytest.TempPathFactory) -> Traced:
    """A small program with libraries, recorded once."""
    return traced_in(tmp_path_factory.mktemp("true") / "rec", native, "/bin/true")


@contextmanager
def running(*command: Path | str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_every_instruction_of_a_known_program_is_counted(built: Callable[..., Path], trace: Trace) -> None:
    traced = trace(built("known.S", "-nostdlib", "-static"))
    assert traced.done.returncode == 0, traced.done.stderr
    assert traced.fetch("SELECT steps, steps_collapsed FROM traced_requests") == [(20_108, 20_009)]
    assert traced.fetch("SELECT sum(steps), sum(stores), sum(loads) FROM trace_segments") == [
        (20_108, 100, 0)
    ]
    assert traced.fetch("SELECT kind, name FROM kernel_entries") == [("system_call", "exit")]
    lines = traced.lines()
    assert sum(line.startswith("store ") for line in lines) == 100
    stores = [int(line.split()[1], 16) for line in lines if line.startswith("store ")]
    assert stores == list(range(stores[0], stores[0] + 100))
    assert "20108 steps" in traced.done.stderr


def test_instructions_are_shown_with_what_they_touch(built: Callable[..., Path], trace: Trace) -> None:
    traced = trace(built("known.S", "-nostdlib", "-static"))
    all_ = traced.instructions()
    assert [each["instruction"] for each in all_[:4]] == [
        "mov ecx,64h",
        "lea rdi,[402000h]",
        "xor eax,eax",
        "cld",
    ]
    # The first iteration, and those that follow it.
    repeated = [each for each in all_ if each["instruction"].startswith("rep stosb")]
    assert [each["stores"] for each in repeated] == [[repeated[0]["stores"][0] + at] for at in range(100)]
    assert [each["step"] for each in all_] == list(range(20_108))
    assert {(each["function"], each["mode"]) for each in all_} == {("_start", "user")}
    assert traced.instructions("--function", "_start", "--end-step", "5") == all_[:5]
    assert [each["step"] for each in traced.instructions("--first-step", "7", "--end-step", "9")] == [7, 8]
    place = f"{repeated[7]['stores'][0]:x}"
    assert traced.instructions("--address", place) == [repeated[7]]
    assert traced.instructions("--task", "known", "--mode", "user", "--image", "known") == all_
    assert traced.instructions("--task", "other") == []
    # The program is not needed any more.
    (traced.folder.parent / "known").unlink()
    assert traced.instructions() == all_


def test_an_instruction_that_faults_is_executed_when_it_succeeds(
    built: Callable[..., Path], trace: Trace
) -> None:
    traced = trace(built("faults.S", "-nostdlib", "-static"))
    assert traced.done.returncode == 0, traced.done.stderr
    assert traced.fetch("SELECT steps, steps_collapsed FROM traced_requests") == [(20, 20)]
    entries = traced.fetch("SELECT kind, name FROM kernel_entries ORDER BY step, kind")
    assert entries == [
        ("system_call", "rt_sigaction"),
        ("signal", "signal 11"),
        ("system_call", "rt_sigreturn"),
        ("system_call", "exit"),
    ]


def test_threads_and_children_have_steps_and_calls_of_their_own(
    built: Callable[..., Path], trace: Trace
) -> None:
    traced = trace(built("threads.c", "-O1", "-pthread"))
    assert traced.done.returncode == 3, traced.done.stderr
    called = traced.fetch(
        "SELECT task_id, count(*) FROM function_calls JOIN traced_functions USING (function_id)"
        " WHERE name = 'work' AND how = 'call' GROUP BY task_id ORDER BY count(*)"
    )
    assert [count for _, count in called] == [5, 10, 20, 30]
    tasks = traced.fetch("SELECT pid, tgid FROM traced_tasks ORDER BY task_id")
    assert len(tasks) == 4
    assert len({pid for pid, _ in tasks}) == 4
    assert len({tgid for _, tgid in tasks}) == 2
    each = (
        "SELECT times, min_steps = max_steps, total_steps = times * min_steps, inclusive_steps = total_steps"
    )
    assert traced.fetch(f"{each} FROM ({FUNCTIONS}) WHERE function = 'work'") == [(65, True, True, True)]


def test_sums_agree(true: Traced) -> None:
    [(steps, collapsed)] = true.fetch("SELECT steps, steps_collapsed FROM traced_requests")
    assert steps > 10_000
    for table in ("trace_segments", "function_calls", "call_paths"):
        assert true.fetch(f"SELECT sum(steps) FROM {table}") == [(steps,)]
    assert true.fetch("SELECT sum(steps_collapsed) FROM trace_segments") == [(collapsed,)]
    pages = "SELECT kind, sum(times) FROM page_references GROUP BY kind ORDER BY kind"
    [(_, data), (_, instructions)] = true.fetch(pages)
    assert instructions == steps
    assert true.fetch("SELECT sum(loads) + sum(stores) FROM trace_segments") == [(data,)]
    outermost = "SELECT sum(steps_inclusive) FROM function_calls WHERE caller_id IS NULL"
    assert true.fetch(outermost) == [(steps,)]
    assert true.fetch("SELECT mode FROM images WHERE path = '/usr/bin/true'") == [("user",)]
    lines = true.lines()
    blocks = [line.split() for line in lines if line.startswith("block ")]
    assert sum(int(count) for _, _, count in blocks) == steps
    assert sum(line.split()[0] in ("load", "store") for line in lines) == data


def test_the_kernels_own_counts_of_calls_agree(trace: Trace, tmp_path: Path) -> None:
    command = ["cat", "/etc/hostname"]
    traced = trace(*command, stdout=subprocess.DEVNULL, capture_output=False)
    subprocess.run(["strace", "-o", tmp_path / "log", *command], stdout=subprocess.DEVNULL, check=True)
    names = re.findall(r"^(\w+)\(", (tmp_path / "log").read_text(), re.M)
    found = traced.fetch("SELECT name FROM kernel_entries WHERE kind = 'system_call' ORDER BY step")
    # Executing the program itself is before the first step.
    assert [name for (name,) in found] == names[1:]


def test_a_process_that_runs_goes_on_after_the_limit(native: Path, tmp_path: Path) -> None:
    with running("sh", "-c", "while :; do :; done") as process:
        words = [native, "itrace", "attach", "-o", tmp_path / "rec", "--limit", "5000", str(process.pid)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr
        assert "the limit of instructions is reached" in done.stderr
        assert process.poll() is None
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert "TracerPid:\t0" in status
        assert "State:\tR" in status
    traced = Traced(native, tmp_path / "rec", done)
    assert traced.fetch("SELECT steps FROM traced_requests") == [(5000,)]
    assert traced.fetch("SELECT comm, pid FROM traced_tasks") == [("sh", process.pid)]


def test_interrupted_it_keeps_what_it_has(native: Path, tmp_path: Path) -> None:
    folder = tmp_path / "rec"
    with running("sh", "-c", "while :; do :; done") as process:
        words = [native, "itrace", "attach", "-o", folder, "--progress", str(process.pid)]
        tracer = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        assert tracer.stderr is not None
        # It steps.
        assert json.loads(tracer.stderr.readline())["event"] == "progress"
        tracer.send_signal(signal.SIGINT)
        said = tracer.communicate()[1]
        assert tracer.returncode == 130, said
        assert process.poll() is None
    assert "interrupted: the process continues untraced" in said
    manifest = json.loads((folder / "recording.json").read_text())
    assert manifest["captures"][0]["ended_by"] == "interrupted"
    with Session(Recording.open(folder), Library()) as session:
        [(steps,)] = session.fetch("SELECT sum(steps) FROM trace_segments")
    assert steps >= 16384


def test_a_killed_tracer_lets_the_process_go(native: Path, tmp_path: Path) -> None:
    with running("sh", "-c", "while :; do :; done") as process:
        words = [native, "itrace", "attach", "-o", tmp_path / "rec", "--progress", str(process.pid)]
        tracer = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        assert tracer.stderr is not None
        tracer.stderr.readline()
        tracer.kill()
        tracer.communicate()
        while "TracerPid:\t0" not in (status := Path(f"/proc/{process.pid}/status").read_text()):
            time.sleep(0.01)
        # In the middle of a step, the kernel has nobody left to tell of it, and the trap ends the process.
        assert process.poll() in (None, -signal.SIGTRAP)
        assert ("State:\tZ" in status) <= (process.poll() is not None)


def test_a_process_that_is_traced_already(native: Path, tmp_path: Path) -> None:
    with (
        running("sleep", "60") as process,
        running("strace", "-o", "/dev/null", "-p", str(process.pid)) as strace,
    ):
        while "TracerPid:\t0" in Path(f"/proc/{process.pid}/status").read_text():
            time.sleep(0.01)
        words = [native, "itrace", "attach", "-o", tmp_path / "rec", str(process.pid)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 2
    assert f"process {process.pid} is traced by process {strace.pid} already" in done.stderr
    assert not (tmp_path / "rec").exists()


def test_a_process_that_is_not_there(native: Path, tmp_path: Path) -> None:
    words = [native, "itrace", "attach", "-o", tmp_path / "rec", "2147483646"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, (tmp_path / "rec").exists()) == (2, False)
    assert "process 2147483646: No such process" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be another user")
def test_a_process_of_somebody_else(native: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    for parent in tmp_path.parents:
        if parent.owner() == "root" and parent not in (Path("/"), Path("/tmp")):
            parent.chmod(0o755)
    copy = tmp_path / "sysdock-native"
    copy.write_bytes(native.read_bytes())
    copy.chmod(0o755)
    with running("sleep", "60") as process:
        words = [copy, "itrace", "attach", "-o", tmp_path / "rec", str(process.pid)]
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=600, check=False, user=NOBODY, group=NOBODY
        )
    assert done.returncode == 2
    assert "Operation not permitted" in done.stderr
    assert "hint: run as root" in done.stderr


def test_the_verbs_make_and_read_a_recording(built: Callable[..., Path], tmp_path: Path) -> None:
    program = str(built("known.S", "-nostdlib", "-static"))
    rec, copy = str(tmp_path / "rec"), str(tmp_path / "copy")

    def sysdock(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "sysdock", *words],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    traced = sysdock("itrace", "attach", "-o", rec, "--", program)
    assert traced.returncode == 0, traced.stderr
    # The first screen: steps by file.
    assert re.search(r"Steps by file .*\n +\S*known +20,108 ", traced.stdout)
    shown = sysdock("show", rec, "itrace/steps", "--format", "json")
    assert [row["steps"] for row in json.loads(shown.stdout)] == [20_108]
    dumped = sysdock("itrace", "dump", rec, "--limit", "1")
    assert (dumped.returncode, dumped.stdout.count("\n")) == (0, 1)
    shown = sysdock("show", rec, "itrace/dump", "-p", "function=_start", "--limit", "1")
    assert (shown.returncode, shown.stdout) == (0, dumped.stdout)
    wrong = sysdock("show", rec, "itrace/dump", "-p", "funktion=_start")
    assert (wrong.returncode, "did you mean function?" in wrong.stderr) == (2, True)
    assert sysdock("itrace", "decode", rec, "--limit", "1").stdout == "task 0\n"
    assert sysdock("itrace", "convert", rec, "-o", copy).returncode == 0
    again = sysdock("itrace", "attach", "-o", rec, "--", program)
    assert again.returncode == 2
    assert "exists" in again.stderr


def test_no_such_command(trace: Trace) -> None:
    traced = trace("no-such-command")
    assert traced.done.returncode == 2
    assert "no-such-command" in traced.done.stderr
    assert not traced.folder.exists()


def test_no_room_for_events(trace: Trace) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 14, 1 << 14))

    traced = trace("/bin/true", preexec_fn=limit)
    assert traced.done.returncode == 2
    assert "trace.sdit: File too large; the process continues untraced" in traced.done.stderr
    manifest = json.loads((traced.folder / "recording.json").read_text())
    assert manifest["captures"][0]["ended_by"] == "write error"


def test_lines_of_sources_are_those_of_addr2line(built: Callable[..., Path], trace: Trace) -> None:
    program = built("threads.c", "-O1", "-pthread", "-static", "-no-pie")
    traced = trace(program)
    addresses = [each["address"] for each in traced.instructions("--image", program.name)]
    assert len(addresses) > 10_000
    words = ["addr2line", "-e", program]
    text = "\n".join(map(hex, addresses))
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=True)
    # `FILE:LINE (discriminator N)`; what has no debug information is `??:0`.
    found = Counter(line.partition(" ")[0] for line in done.stdout.splitlines() if "?" not in line)
    sql = "SELECT concat(path, ':', line), CAST(sum(steps) AS BIGINT) FROM source_lines GROUP BY ALL"
    assert dict(traced.fetch(sql)) == dict(found)
    assert any("threads.c:" in place for place in found)


def test_reuse_distances_are_those_of_a_list(true: Traced) -> None:
    words = (line.split() for line in true.lines())
    addresses = [int(word[1], 16) for word in words if word[0] in ("load", "store")]
    for size in (64, 4096):
        used: list[int] = []
        expected: Counter[int | None] = Counter()
        # The latest first.
        for block in (address // size for address in addresses):
            distance = used.index(block) if block in used else None
            expected[1 << distance.bit_length() - 1 if distance else distance] += 1
            if distance is not None:
                del used[distance]
            used.insert(0, block)
        sql = "SELECT distance, CAST(sum(times) AS BIGINT) FROM reuse_distances"
        found = true.fetch(f"{sql} WHERE kind = 'data' AND block_bytes = {size} GROUP BY distance")
        assert dict(found) == dict(expected)
    pages = "SELECT count(DISTINCT page) FROM page_references WHERE kind = 'data'"
    assert true.fetch(pages) == [(len(used),)]


def test_a_timeline_has_each_call_once(true: Traced, tmp_path: Path) -> None:
    out, again = tmp_path / "out.json", tmp_path / "out.perfetto-trace"
    with Session(Recording.open(true.folder), Library()) as session:
        written = write_file(session, "chrome", out, 1_000_000)
        assert write_file(session, "perfetto", again, 1_000_000) == written
        few = write_file(session, "chrome", tmp_path / "few", 100)
    events = json.loads(out.read_text())["traceEvents"]
    open_: list[dict[str, Any]] = []
    calls: Counter[str] = Counter()
    for event in events:
        if event["ph"] == "B":
            calls[event["name"]] += 1
            open_.append(event)
        elif event["ph"] == "E":
            assert open_.pop()["ts"] <= event["ts"]
    assert not open_
    assert dict(true.fetch(f"SELECT function, times FROM ({FUNCTIONS})")) == dict(calls)
    assert written.shown == written.total
    assert few.shown <= 100 < few.total
    kept = [
        event for event in json.loads((tmp_path / "few").read_text())["traceEvents"] if event["ph"] == "B"
    ]
    # The function that executed first was called by nobody.
    assert (len(kept), few.kept) == (few.shown + 1, "the outermost")
