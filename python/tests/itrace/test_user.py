"""Programs under qemu-user, whose instructions are known, or are counted by others, too."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sysdock.errors import UserError
from sysdock.itrace.files import find_plugin
from sysdock.itrace.qemu import find_user_qemu
from traced_program import Traced

HERE = Path(__file__).parent
Build = Callable[..., Path]
Words = list[Path | str]
OWN = """
    SELECT name, sum(steps)::BIGINT FROM function_calls JOIN traced_functions USING (function_id) GROUP BY name
"""
ENTRIES = "SELECT kind, name FROM kernel_entries ORDER BY step, kind DESC"


Trace = Callable[..., Traced]


@pytest.fixture
def user_words(native: Path) -> Words:
    """The verb, without what is to be recorded."""
    if not shutil.which("qemu-x86_64"):
        pytest.skip("qemu-user is not installed (apt-get install qemu-user)")
    try:
        return [native, "itrace", "user", "--qemu", find_user_qemu(None), "--plugin", find_plugin()]
    except UserError as error:
        pytest.skip(str(error))


@pytest.fixture
def trace(native: Path, user_words: Words, tmp_path: Path) -> Trace:
    """Runs a command under qemu-user."""

    def run(*command: Path | str, options: tuple[str, ...] = (), **more: Any) -> Traced:
        folder = tmp_path / "rec"
        words = [*user_words, "-o", folder, *options, "--", *command]
        more = {"capture_output": True, "text": True, "timeout": 600} | more
        return Traced(native, folder, subprocess.run(words, check=False, **more))

    return run


def test_every_instruction_of_a_known_program_is_counted(built: Build, trace: Trace) -> None:
    traced = trace(built("known.S", "-nostdlib", "-static"))
    assert traced.done.returncode == 0, traced.done.stderr
    assert traced.steps() == (20_108, 20_009)
    assert traced.fetch("SELECT sum(stores), sum(loads) FROM trace_segments") == [(100, 0)]
    assert traced.fetch(ENTRIES) == [("system_call", "exit")]
    stores = [int(line.split()[1], 16) for line in traced.lines() if line.startswith("store ")]
    assert stores == list(range(stores[0], stores[0] + 100))
    assert traced.fetch("SELECT comm, steps FROM traced_tasks") == [("known", 20_108)]
    functions = "SELECT name, path, mode FROM traced_functions JOIN images USING (image_id)"
    assert traced.fetch(functions) == [("_start", str(traced.folder.parent / "known"), "user")]
    facts = dict(traced.fetch("SELECT name, value FROM environment WHERE section = 'trace'"))
    assert (facts["backend"], facts["cpu model"]) == ("user", "qemu64 (qemu)")
    assert "what the kernel does for system calls is not traced" in traced.done.stderr


def test_an_instruction_that_faults_is_executed_when_it_succeeds(built: Build, trace: Trace) -> None:
    traced = trace(built("faults.S", "-nostdlib", "-static"))
    assert traced.done.returncode == 0, traced.done.stderr
    assert traced.steps() == (20, 20)
    assert traced.fetch(ENTRIES) == [
        ("system_call", "rt_sigaction"),
        ("signal", "signal 11"),
        ("system_call", "rt_sigreturn"),
        ("system_call", "exit"),
    ]


def test_functions_have_the_instructions_that_callgrind_counts(
    built: Build, trace: Trace, tmp_path: Path
) -> None:
    if not shutil.which("callgrind_annotate"):
        pytest.skip("valgrind is not installed (apt-get install valgrind)")
    program = built("profiled.c", "-O1", "-static")
    traced = trace(program)
    assert traced.done.returncode == 0, traced.done.stderr
    out = tmp_path / "callgrind.out"
    words = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", str(program)]
    subprocess.run(words, capture_output=True, check=True)
    words = ["callgrind_annotate", "--threshold=100", "--show-percs=no", str(out)]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    counted = {
        name.partition("'")[0]: int(number.replace(",", ""))
        for number, name in re.findall(r"^ *([\d,]+) +\S*:(\S+) \[", said, re.M)
    }
    own = dict(traced.fetch(OWN))
    names = ("main", "compare", "sprintf", "__vsprintf_internal", "_itoa_word")
    assert {name: own[name] for name in names} == {name: counted[name] for name in names}


def test_sums_agree(trace: Trace) -> None:
    traced = trace("/bin/true")
    steps, collapsed = traced.steps()
    assert steps > 10_000
    for table in ("trace_segments", "function_calls", "call_paths"):
        assert traced.fetch(f"SELECT sum(steps) FROM {table}") == [(steps,)]
    assert traced.fetch("SELECT sum(steps_collapsed) FROM trace_segments") == [(collapsed,)]
    assert traced.fetch("SELECT sum(times) FROM page_references WHERE kind = 'instruction'") == [(steps,)]
    # All that was executed is of a file of the program, none of them qemu's.
    paths = [path for (path,) in traced.fetch("SELECT path FROM images ORDER BY path")]
    assert "/usr/bin/true" in paths
    assert [path for path in paths if "qemu" in path or path.startswith("[")] == []
    again = Traced(traced.native, traced.folder.parent / "again", traced.done)
    subprocess.run([traced.native, "itrace", "convert", traced.folder, "-o", again.folder], check=True)
    assert again.steps() == (steps, collapsed)


def test_system_calls_are_those_that_strace_sees(trace: Trace, tmp_path: Path) -> None:
    command = ["ls", "/etc"]
    traced = trace(*command, stdout=subprocess.DEVNULL, capture_output=False)
    subprocess.run(["strace", "-o", tmp_path / "log", *command], stdout=subprocess.DEVNULL, check=True)
    names = re.findall(r"^(\w+)\(", (tmp_path / "log").read_text(), re.M)
    found = [
        name
        for (name,) in traced.fetch(
            "SELECT name FROM kernel_entries WHERE kind = 'system_call' ORDER BY step"
        )
    ]
    # The loader looks at the processor, which is qemu's; it makes no call that it does not make here.
    assert set(found) <= set(names)
    assert [name for name in found if name in ("openat", "getdents64", "write")] == [
        name for name in names if name in ("openat", "getdents64", "write")
    ]


def test_signals_are_named(built: Build, trace: Trace) -> None:
    traced = trace(built("signals.c", "-O1"))
    assert traced.done.returncode == 0, traced.done.stderr
    signals = traced.fetch("SELECT name FROM kernel_entries WHERE kind = 'signal' ORDER BY step")
    # The last handler is that of two signals: nobody says which one an alarm was.
    assert signals == [(f"signal {signal.SIGUSR1.value}",), (f"signal {signal.SIGUSR2.value}",), ("signal",)]


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGTERM, signal.SIGKILL])
def test_a_program_that_dies_of_a_signal(built: Build, trace: Trace, number: signal.Signals) -> None:
    traced = trace(built("signals.c", "-O1"), str(number.value))
    assert traced.done.returncode == -number
    assert traced.lines()[-1] == f"signal {number.value}"
    last = traced.fetch("SELECT kind, name FROM kernel_entries ORDER BY step DESC, kind LIMIT 1")
    assert last == [("signal", f"signal {number.value}")]
    blocks = [line.split() for line in traced.lines() if line.startswith("block ")]
    assert sum(int(count) for _, _, count in blocks) >= traced.steps()[0] > 10_000
    assert traced.manifest()["captures"][0]["ended_by"] == "end of input"


def test_a_second_thread_ends_the_recording(built: Build, trace: Trace) -> None:
    traced = trace(built("threads.c", "-O1", "-pthread"))
    # The program goes on to its end.
    assert traced.done.returncode == 3, traced.done.stderr
    assert "the program started a second thread: nothing is recorded from there on" in traced.done.stderr
    assert traced.lines()[-1] in ("system_call clone", "system_call clone3")
    assert "work" not in dict(traced.fetch(OWN))


def test_children_run_and_are_not_recorded(trace: Trace) -> None:
    traced = trace("/bin/sh", "-c", "(exit 4) & wait $!; /bin/true; exit 5")
    assert traced.done.returncode == 5
    assert "2 child processes are not recorded" in traced.done.stderr
    assert traced.lines()[-1] == "system_call exit_group"
    assert len(traced.fetch("SELECT * FROM traced_tasks")) == 1


def test_a_program_that_becomes_another_one(trace: Trace) -> None:
    traced = trace("/bin/sh", "-c", "exec /bin/sh -c 'exit 6'")
    assert traced.done.returncode == 6
    assert "the program executed another one (execve)" in traced.done.stderr
    assert traced.lines()[-1] == "system_call execve"


def test_recording_ends_at_the_limit_and_the_program_goes_on(trace: Trace) -> None:
    traced = trace("/bin/sh", "-c", "exit 7", options=("--limit", "5000"))
    assert traced.done.returncode == 7
    assert "the limit of instructions is reached" in traced.done.stderr
    # At the end of a block.
    blocks = [int(line.split()[2]) for line in traced.lines() if line.startswith("block ")]
    assert sum(blocks) - blocks[-1] < 5000 <= sum(blocks)


def test_a_program_that_closes_all_files_is_still_recorded(trace: Trace, tmp_path: Path) -> None:
    script = tmp_path / "close.sh"
    script.write_text("".join(f"exec {number}>&-\n" for number in range(3, 10)) + "exit 8\n")
    traced = trace("/bin/sh", script)
    assert traced.done.returncode == 8
    assert traced.lines()[-1] == "system_call exit_group"


@pytest.fixture
def waiting(user_words: Words, built: Build, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A recorder whose program has said that it runs, and waits for a line."""
    words = [*user_words, "-o", tmp_path / "rec", "--", built("waits.c", "-O1")]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe) as tracer:
        assert tracer.stdout is not None
        assert tracer.stdout.readline() == b"runs\n"
        yield tracer


def test_interrupted_it_keeps_what_it_has(
    waiting: subprocess.Popen[bytes], native: Path, tmp_path: Path
) -> None:
    waiting.send_signal(signal.SIGINT)
    # Not `communicate` first: it would close the program's input, which then might end by itself.
    waiting.wait(600)
    said = waiting.communicate()[1].decode()
    assert waiting.returncode == 130, said
    assert "interrupted: the program was ended" in said
    traced = Traced(native, tmp_path / "rec", subprocess.CompletedProcess([], 130))
    assert traced.manifest()["captures"][0]["ended_by"] == "interrupted"
    assert traced.steps()[0] > 10_000
    assert traced.lines()[-1] == f"signal {signal.SIGTERM.value}"


def test_a_program_whose_recorder_was_killed_goes_on(waiting: subprocess.Popen[bytes]) -> None:
    waiting.kill()
    waiting.wait()
    # More than the memory between both takes, which nobody empties.
    assert waiting.communicate(b"\n", timeout=600)[0] == b"done\n"


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")
def test_no_room_for_events(user_words: Words, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", small], check=True)
    try:
        words = [*user_words, "-o", small / "rec", "--", "/bin/sh", "-c", "exit 9"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    finally:
        subprocess.run(["umount", small], check=True)
    assert done.returncode == 2
    assert "No space left on device" in done.stderr


def test_programs_that_cannot_be_run(trace: Trace, built: Build, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\nexit 1\n")
    text = tmp_path / "text"
    text.write_text("a text\n")
    other = tmp_path / "other"
    head = bytearray(built("known.S", "-nostdlib", "-static").read_bytes())
    head[18:20] = (183).to_bytes(2, "little")
    other.write_bytes(head)
    broken = tmp_path / "broken"
    broken.write_bytes(bytes(head[:18]) + (62).to_bytes(2, "little") + bytes(20))
    said = {
        script: "is a script",
        text: "is not a program",
        other: "is a program for another processor than x86-64",
        broken: "before the first instruction",
        tmp_path / "missing": "command not found",
        tmp_path: "is a directory",
    }
    for program, words in said.items():
        if program.is_file():
            program.chmod(0o755)
        traced = trace(program)
        assert traced.done.returncode == 2, program
        assert words in traced.done.stderr
        assert not traced.folder.exists()


def test_a_qemu_without_plugins(tmp_path: Path) -> None:
    static = tmp_path / "qemu-x86_64"
    static.write_text("#!/bin/sh\necho usage: qemu-x86_64 [options] program\n")
    static.chmod(0o755)
    with pytest.raises(UserError, match="was built without plugins") as raised:
        find_user_qemu(str(static))
    assert "apt-get install qemu-user" in str(raised.value.hint)
    with pytest.raises(UserError, match="is not qemu-user for x86-64"):
        find_user_qemu("/bin/true")
    with pytest.raises(UserError, match="no-such-qemu: not found"):
        find_user_qemu("no-such-qemu")


def test_the_verb_makes_a_recording(built: Build, user_words: Words, tmp_path: Path) -> None:
    del user_words
    program, rec = str(built("known.S", "-nostdlib", "-static")), str(tmp_path / "rec")
    words = [sys.executable, "-m", "sysdock", "itrace", "user", "-o", rec, "--", program]
    traced = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert traced.returncode == 0, traced.stderr
    assert re.search(r"Steps by file .*\n +\S*known +20,108 ", traced.stdout)
    again = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert again.returncode == 2
    assert "exists" in again.stderr
