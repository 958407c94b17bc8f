"""Recording a command: its streams, exit status and signals pass through; what cannot be recorded is refused."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from recorders import Recorder, recorder_or_skip
from sampling import sampled
from waiting import wait_for

Query = Callable[[Path, str], list[tuple]]


@pytest.fixture
def strace(native: Path) -> Recorder:
    """One of the recorders, for what only it needs or does."""
    return recorder_or_skip(native, "strace")


def test_streams_and_exit_status_pass_through(
    recorder: Recorder, tmp_path: Path, query: Query, manifest: Callable
) -> None:
    done = recorder.record(tmp_path / "rec", "sh", "-c", "cat; echo error >&2; exit 7", input="text\n")
    assert (done.returncode, done.stdout, done.stderr) == (7, "text\n", "error\n")
    stated = manifest(tmp_path / "rec")
    assert (stated["recorder"], stated["exit_code"], stated["complete"], stated["has_exits"]) == (
        recorder.name,
        7,
        True,
        True,
    )
    assert stated["command"] == "sh -c 'cat; echo error >&2; exit 7'"
    assert stated["host"] == os.uname().nodename
    assert stated["lines_total"] == stated["lines_understood"] > 50
    assert query(
        tmp_path / "rec", "SELECT value FROM environment WHERE section = 'kernel' AND name = 'release'"
    ) == [(os.uname().release,)]
    assert query(
        tmp_path / "rec",
        "SELECT count(*) > 3, bool_and(source = 'recorder') FROM environment WHERE section = 'mount'",
    ) == [(True, True)]


@pytest.mark.parametrize("ignored", [(), (signal.SIGHUP,), (signal.SIGINT, signal.SIGQUIT)], ids=str)
def test_the_command_finds_everything_as_it_is_without_a_recorder(
    recorder: Recorder, tmp_path: Path, ignored: tuple[signal.Signals, ...]
) -> None:
    """Descriptors, signals, rights, limits, environment; below nohup(1), and in the background of a script."""
    script = (
        "ls /proc/self/fd; grep -E '^(Sig(Blk|Ign|Cgt)|Cap|Uid|Groups|NoNewPrivs|Seccomp)' /proc/self/status;"
        "ulimit -a; umask; pwd; nice; env | grep -v ^_= | sort"
    )

    def ignore() -> None:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True, "timeout": 600}
    options["preexec_fn"] = ignore
    # As <(...) of a shell and the job server of make leave them.
    left_open = os.open("/dev/null", os.O_RDONLY)
    options["pass_fds"] = [left_open]
    plain = subprocess.run(["sh", "-c", script], **options)
    assert str(left_open) in plain.stdout.splitlines()[:5]
    recorded = recorder.record(tmp_path / "rec", "sh", "-c", script, capture_output=False, **options)
    os.close(left_open)
    assert recorded.stdout.splitlines() == plain.stdout.splitlines()


def test_what_is_left_in_the_background_is_recorded_to_its_end(
    recorder: Recorder, tmp_path: Path, query: Query, manifest: Callable
) -> None:
    script = "(sleep 0.5; cat /etc/hostname >/dev/null; exit 9) & exit 4"
    done = recorder.record(tmp_path / "rec", "sh", "-c", script, stdin=subprocess.DEVNULL)
    assert done.returncode == 4
    opened = "call = 'openat' AND path = '/etc/hostname'"
    assert query(
        tmp_path / "rec", f"SELECT count(*) FROM calls JOIN paths USING (path_id) WHERE {opened}"
    ) == [(1,)]
    ends = query(tmp_path / "rec", "SELECT exit_code, count(*) FROM processes GROUP BY 1 ORDER BY 1")
    assert ends == [(0, 2), (4, 1), (9, 1)]
    stated = manifest(tmp_path / "rec")
    assert (stated["exit_code"], stated["complete"], stated["has_exits"]) == (4, True, True)


def test_every_process_of_a_tree_of_short_ones_is_there(
    recorder: Recorder, tmp_path: Path, query: Query, manifest: Callable
) -> None:
    """254 of them, most alive at the same time, each with an exit status of its own depth."""
    script = "tree() { if [ $1 -gt 0 ]; then (tree $(($1 - 1)); exit $1) & (tree $(($1 - 1)); exit $1) & wait; fi; }; tree 7"
    done = recorder.record(tmp_path / "rec", "sh", "-c", script)
    assert (done.returncode, done.stderr) == (0, "")
    ends = query(tmp_path / "rec", "SELECT exit_code, count(*) FROM processes GROUP BY 1 ORDER BY 1")
    assert ends == [(0, 1), *[(depth, 2 ** (8 - depth)) for depth in range(1, 8)]]
    depths = query(tmp_path / "rec", "SELECT depth, count(*) FROM processes GROUP BY 1 ORDER BY 1")
    assert depths == [(depth, 2**depth) for depth in range(8)]
    assert manifest(tmp_path / "rec")["lost_events"] == 0


def test_relative_paths_are_made_absolute(recorder: Recorder, tmp_path: Path, query: Query) -> None:
    (tmp_path / "here").write_text("x")
    recorder.record(tmp_path / "rec", "cat", "here", "missing", cwd=tmp_path)
    rows = query(
        tmp_path / "rec",
        "SELECT path, errno FROM calls JOIN paths USING (path_id) WHERE path LIKE '%here' OR path LIKE '%missing' GROUP BY ALL ORDER BY 1",
    )
    assert rows == [(f"{tmp_path}/here", None), (f"{tmp_path}/missing", "ENOENT")]


def test_a_death_by_signal_is_the_recorders_too(
    recorder: Recorder, tmp_path: Path, manifest: Callable
) -> None:
    done = recorder.record(tmp_path / "rec", "sh", "-c", "kill -SEGV $$")
    assert done.returncode == -signal.SIGSEGV
    assert manifest(tmp_path / "rec")["exit_signal"] == "SIGSEGV"


@pytest.mark.parametrize(
    ("command", "fact"),
    [
        ("no-such-command", "no-such-command: command not found"),
        ("/no/such/file", "/no/such/file: command not found"),
        ("/etc", "/etc: is a directory"),
        ("./plain", "./plain: not executable"),
    ],
)
def test_commands_that_cannot_start_are_refused(
    recorder: Recorder, tmp_path: Path, command: str, fact: str
) -> None:
    (tmp_path / "plain").write_text("no program")
    done = recorder.record(tmp_path / "rec", command, cwd=tmp_path)
    assert done.returncode == 2
    assert fact in done.stderr
    assert "\n\nhint: " in done.stderr
    assert not (tmp_path / "rec").exists()


def test_without_strace_the_hint_says_how_to_install_it(strace: Recorder, tmp_path: Path) -> None:
    done = strace.record(tmp_path / "rec", "/bin/true", env={"PATH": str(tmp_path)})
    assert done.returncode == 2
    assert "strace is not installed" in done.stderr
    assert "apt-get install strace" in done.stderr


def test_a_tracer_that_records_nothing_is_an_error(strace: Recorder, tmp_path: Path) -> None:
    """As in a container without ptrace: strace ends at once and its log stays empty."""
    fake = tmp_path / "strace"
    fake.write_text(
        "#!/bin/sh\necho 'strace: ptrace(PTRACE_TRACEME, ...): Operation not permitted' >&2\nexit 1\n"
    )
    fake.chmod(0o755)
    done = strace.record(tmp_path / "rec", "/bin/true", env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert done.returncode == 2
    assert "strace recorded nothing" in done.stderr
    assert "ptrace" in done.stderr
    assert not (tmp_path / "rec").exists()


def start(recorder: Recorder, out: Path, script: str) -> subprocess.Popen:
    """Start a recording of a shell script in a process group of its own, and wait until the script says `ready`."""
    process = subprocess.Popen(
        recorder.command(out, "sh", "-c", script),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "ready\n"
    return process


def test_sigterm_reaches_the_command(recorder: Recorder, tmp_path: Path, manifest: Callable) -> None:
    process = start(
        recorder,
        tmp_path / "rec",
        "trap 'echo caught; exit 5' TERM; echo ready; while :; do sleep 0.05; done",
    )
    process.terminate()
    assert process.wait(600) == 5
    assert process.stdout.read() == "caught\n"
    assert manifest(tmp_path / "rec")["complete"] is True


def test_ctrl_c_ends_the_command_and_keeps_the_recording(
    recorder: Recorder, tmp_path: Path, manifest: Callable
) -> None:
    process = start(recorder, tmp_path / "rec", "echo ready; sleep 20")
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(600) == -signal.SIGINT
    stated = manifest(tmp_path / "rec")
    assert (stated["complete"], stated["exit_signal"]) == (True, "SIGINT")


def test_ctrl_c_before_the_command_runs_ends_all_without_a_word(recorder: Recorder, tmp_path: Path) -> None:
    """While the recorder gets ready, the command would have been ended by it; nobody is to read of rights that are missing."""
    for tenth in range(0, 12, sampled(4, 1)):
        out = tmp_path / f"rec{tenth}"
        process = subprocess.Popen(
            recorder.command(out, "sleep", "20"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        wait_for(lambda process=process: is_in(process.pid, "SigCgt", signal.SIGINT), "a handler")
        time.sleep(tenth * 0.01)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=600)
        assert process.returncode == -signal.SIGINT, said
        assert "sudo" not in said


def is_in(pid: int, mask: str, number: int) -> bool:
    """Whether a signal is in a mask of a process: SigCgt, those that it handles; ShdPnd, those that it is yet to get."""
    status = Path(f"/proc/{pid}/status").read_text()
    signals = next(line.split()[1] for line in status.splitlines() if line.startswith(mask))
    return bool(int(signals, 16) & 1 << (number - 1))


@pytest.mark.parametrize(
    "work", ["sleep 60 & wait; wait", *sampled(1, 3) * ["while :; do cat /dev/null; done"]]
)
def test_a_second_ctrl_c_ends_the_recording_of_a_command_that_does_not_heed_it(
    recorder: Recorder, tmp_path: Path, manifest: Callable, query: Query, work: str
) -> None:
    # It runs on without the recorder, longer than any machine takes to see two signals.
    process = start(recorder, tmp_path / "rec", f"trap '' INT; echo ready; {work}")
    try:
        for _ in range(2):
            time.sleep(0.2)
            os.killpg(process.pid, signal.SIGINT)
            # Two that are pending at the same time would be one.
            wait_for(lambda: not is_in(process.pid, "ShdPnd", signal.SIGINT), "its handler")
        assert process.wait(600) == 130
    finally:
        os.killpg(process.pid, signal.SIGKILL)
    stated = manifest(tmp_path / "rec")
    assert (stated["complete"], stated["ended_by"]) == (False, "interrupted")
    assert query(tmp_path / "rec", "SELECT count(*) > 50 FROM calls") == [(True,)]


def test_a_killed_recorder_leaves_what_it_had_and_the_command_runs_on(
    strace: Recorder, tmp_path: Path, manifest: Callable, query: Query
) -> None:
    """After ten seconds there is a checkpoint, also while the command is quiet; strace goes with the recorder, without a word."""
    out = tmp_path / "rec"
    go_on = tmp_path / "go_on"
    os.mkfifo(go_on)
    script = f"cat /etc/hostname >/dev/null; echo ready; read line < {go_on}; echo alive > {tmp_path}/alive"
    with open(tmp_path / "stderr", "w") as stderr:
        process = subprocess.Popen(
            strace.command(out, "sh", "-c", script), stdout=subprocess.DEVNULL, stderr=stderr
        )
        wait_for(lambda: manifest_of(out, manifest).get("calls", {}).get("parts"), "a checkpoint")
        process.kill()
        process.wait(600)
    go_on.write_text("\n")
    wait_for((tmp_path / "alive").exists, "the end of the command")
    assert (tmp_path / "stderr").read_text() == ""
    stated = manifest(out)
    assert (stated["complete"], stated["ended_by"]) == (False, "running")
    assert query(
        out,
        "SELECT count(*) FROM calls JOIN paths USING (path_id) WHERE call = 'openat' AND path = '/etc/hostname'",
    ) == [(1,)]
    assert query(out, "SELECT count(*) FROM processes") == [(2,)]
    assert query(out, "SELECT count(*) > 10 FROM environment") == [(True,)]


def manifest_of(out: Path, manifest: Callable) -> dict:
    """The tables of a recording that may not be there yet."""
    return manifest(out)["tables"] if (out / "recording.json").exists() else {}


def test_a_recording_that_cannot_be_written_does_not_hold_the_command(
    recorder: Recorder, tmp_path: Path
) -> None:
    """The limit of file sizes stands for a full disk: the command goes on to its end, and the error names the file."""
    out = tmp_path / "rec"
    script = "i=0; while [ $i -lt 3000 ]; do : < /etc/hostname; i=$((i+1)); done; echo done; exit 37"
    command = shlex.join(map(str, recorder.command(out, "sh", "-c", script)))
    done = subprocess.run(
        ["sh", "-c", f"ulimit -f 8; exec {command}"], capture_output=True, text=True, timeout=600
    )
    assert done.stdout == "done\n"
    assert done.returncode == 37
    assert "larger than this shell's limit" in done.stderr


def test_a_folder_for_the_pipe_that_cannot_be_made_leaves_nothing(strace: Recorder, tmp_path: Path) -> None:
    done = strace.record(
        tmp_path / "rec", "/bin/true", env={"PATH": "/usr/bin:/bin", "TMPDIR": "/nonexistent"}
    )
    assert done.returncode == 2
    assert "TMPDIR" in done.stderr
    assert not (tmp_path / "rec").exists()


def test_names_with_control_characters_do_not_reach_the_terminal_raw(
    recorder: Recorder, tmp_path: Path
) -> None:
    done = recorder.record(tmp_path / "rec", "\x1b[31mno")
    assert "\x1b" not in done.stderr
    assert "\\u{1b}[31mno: command not found" in done.stderr
