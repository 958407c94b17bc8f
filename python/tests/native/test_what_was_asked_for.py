"""That a recording is of what was asked for: children that run already, what a command leaves behind, words for an empty one."""

from __future__ import annotations

import os
import pwd
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from recorders import Recorder, recorder_or_skip
from waiting import state_of, wait_for

Query = Callable[[Path, str], list[tuple]]
NOBODY = 65534


@pytest.fixture
def kernel(native: Path) -> Recorder:
    """Only this one records what runs already."""
    return recorder_or_skip(native, "kernel")


@contextmanager
def running(script: str) -> Iterator[subprocess.Popen]:
    """A shell that runs `script`, which ends when it cannot read any more; it says when it is ready."""
    shell = subprocess.Popen(
        ["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        shell.stdout.readline()
        yield shell
    finally:
        os.killpg(shell.pid, 9)
        shell.communicate()


def below(pid: int) -> list[int]:
    """Processes that a process has made, and those that they have made."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []
    return [each for child in map(int, children) for each in (child, *below(child))]


def words_of(pid: int) -> list[str]:
    """The command line of a process."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    except (FileNotFoundError, ProcessLookupError):
        return []


def watch(kernel: Recorder, out: Path, *options: str) -> str:
    """Records what runs for half a second; returns what was said."""
    words = [kernel.native, "record", "-o", out, *options, "--for", "500ms"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_children_that_run_already_are_recorded(
    kernel: Recorder, tmp_path: Path, query: Query, manifest: Callable
) -> None:
    # Workers below a master that does nothing itself, as web servers have them; one is a grandchild.
    worker = "while :; do cat /etc/hostname >/dev/null; sleep 0.02; done"
    with running(f"({worker}) & (sh -c '{worker}' & wait) & echo ready; read stop") as shell:
        while ["sh", "-c", worker] not in map(words_of, below(shell.pid)):
            time.sleep(0.01)
        said = watch(kernel, tmp_path / "rec", "-p", str(shell.pid))
    found = query(
        tmp_path / "rec",
        "SELECT count(DISTINCT ppid), count(*) FROM processes JOIN commands USING (comm_id) WHERE comm = 'cat'",
    )
    [(parents, cats)] = found
    assert (parents, cats >= 2) == (2, True)
    stated = manifest(tmp_path / "rec")["watched"]
    assert stated["processes"][0]["children"] >= 3
    assert (
        f"recording process {shell.pid} (sh) and {stated['processes'][0]['children']} child processes" in said
    )
    assert "no system call" not in said


def test_a_recorder_does_not_record_itself(kernel: Recorder, tmp_path: Path, query: Query) -> None:
    words = f"{kernel.native} record -o {tmp_path}/rec -p $$ --for 500ms; echo"
    subprocess.run(["sh", "-c", words], capture_output=True, check=True, timeout=600)
    found = query(tmp_path / "rec", "SELECT comm FROM processes JOIN commands USING (comm_id)")
    assert found == [("sh",)]


def test_an_empty_recording_says_so_and_why(kernel: Recorder, tmp_path: Path, manifest: Callable) -> None:
    with running("echo ready; read stop") as shell:
        wait_for(lambda: state_of(shell.pid) == "S", "its read")
        said = watch(kernel, tmp_path / "rec", "-p", str(shell.pid))
    words = rf"no system call was recorded of process {shell.pid} \(sh\) in [0-9.]+ s: its processes slept"
    assert re.search(words, said)
    stated = manifest(tmp_path / "rec")
    assert stated["started_ns"] > 0
    assert 4e8 < stated["duration_ns"] < 30e9


def test_all_processes_are_named_as_such(kernel: Recorder, tmp_path: Path, manifest: Callable) -> None:
    assert "recording all processes" in watch(kernel, tmp_path / "rec", "-a")
    stated = manifest(tmp_path / "rec")
    assert (stated["watched"], stated["command"]) == ("all", None)
    assert 4e8 < stated["duration_ns"] < 30e9


def test_what_is_left_behind_is_not_waited_for_if_nobody_wants_that(
    recorder: Recorder, tmp_path: Path, manifest: Callable
) -> None:
    script = "sleep 60 >/dev/null 2>&1 & echo $!; exit 4"
    done = recorder.record(
        tmp_path / "rec",
        "sh",
        "-c",
        script,
        recorder_options=("--wait", "no"),
        stdin=subprocess.DEVNULL,
        timeout=600,
    )
    assert (done.returncode, done.stderr) == (4, "")
    stated = manifest(tmp_path / "rec")
    assert (stated["complete"], stated["exit_code"]) == (True, 4)
    # It runs on, without whoever recorded.
    left = int(done.stdout)
    status = Path(f"/proc/{left}/status").read_text()
    assert "TracerPid:\t0" in status
    os.kill(left, 9)


def test_it_says_what_it_waits_for(recorder: Recorder, tmp_path: Path) -> None:
    script = "sleep 2.5 >/dev/null 2>&1 & exit 4"
    done = recorder.record(tmp_path / "rec", "sh", "-c", script, stdin=subprocess.DEVNULL)
    assert done.returncode == 4
    assert "the command has ended; recording goes on" in done.stderr
    assert "sleep (" in done.stderr
    assert "--wait=no" in done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_a_command_below_sudo_finds_the_path_of_who_called_it(recorder: Recorder, place: Path) -> None:
    own = place / "bin"
    own.mkdir()
    (own / "mine").write_text("#!/bin/sh\necho $PATH\n")
    (own / "mine").chmod(0o755)
    # What sudo does, under its name: another PATH for what it starts, while its own environment keeps the caller's.
    (place / "sudo").symlink_to("/bin/bash")
    caller = pwd.getpwuid(NOBODY)
    sets = f"export PATH=/usr/sbin:/usr/bin:/bin SUDO_UID={NOBODY} SUDO_GID={caller.pw_gid} SUDO_USER=nobody"
    words = recorder.command(place / "rec", "mine")
    line = " ".join(map(str, words))
    path = f"/usr/bin:/bin:{own}"
    done = subprocess.run(
        [place / "sudo", "-c", f"{sets}; {line}; true"],
        capture_output=True,
        text=True,
        env={"PATH": path},
        timeout=600,
    )
    assert done.stdout == f"{path}\n", done.stderr
