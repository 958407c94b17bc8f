"""In namespaces of their own, processes have other numbers and clocks other times: what is recorded is right, or refused with the reason."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from recorders import Recorder

Query = Callable[[Path, str], list[tuple]]


def unshared(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run unshare(1) with these words."""
    done = subprocess.run(["unshare", "--fork", *words], capture_output=True, text=True, timeout=120)
    if "Operation not permitted" in done.stderr:
        pytest.skip(f"no namespace can be made here: {done.stderr.strip()}")
    return done


def test_times_in_a_time_namespace_are_those_of_the_calendar(
    recorder: Recorder, tmp_path: Path, query: Query
) -> None:
    before = time.time_ns()
    done = unshared("--time", "--monotonic", "100000", *recorder.command(tmp_path / "rec", "true"))
    assert (done.returncode, done.stderr) == (0, "")
    [(first, last)] = query(tmp_path / "rec", "SELECT min(ts_ns), max(ts_ns) FROM calls")
    assert before <= first <= last <= time.time_ns()


def test_a_pid_namespace_is_recorded_by_strace(
    native: Path, tmp_path: Path, query: Query, manifest: Callable
) -> None:
    """By the numbers that processes have there, and with the reason why not by the kernel's events."""
    command = [native, "record", "-o", tmp_path / "rec", "--", "sh", "-c", "echo $$; cat /dev/null; exit 7"]
    done = unshared("--pid", "--mount-proc", *command)
    assert done.returncode == 7
    assert "this PID namespace" in done.stderr
    assert manifest(tmp_path / "rec")["recorder"] == "strace"
    [(pid,)] = query(tmp_path / "rec", "SELECT pid FROM processes WHERE exit_code = 7")
    assert pid == int(done.stdout)
    done = unshared("--pid", "--mount-proc", native, "record", "-o", tmp_path / "other", "-p", "1")
    assert (done.returncode, (tmp_path / "other").exists()) == (2, False)
    assert "this PID namespace" in done.stderr


def test_a_proc_of_another_pid_namespace_is_refused(recorder: Recorder, tmp_path: Path) -> None:
    """What is read there would be about other processes."""
    done = unshared("--pid", *recorder.command(tmp_path / "rec", "true"))
    assert (done.returncode, (tmp_path / "rec").exists()) == (2, False)
    assert "hint: mount one of this namespace" in done.stderr
