"""In namespaces of their own, processes have other numbers and clocks other times: what is recorded is right, or refused with the reason."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from recorders import Recorder, recorder_or_skip

Query = Callable[[Path, str], list[tuple]]


@pytest.fixture
def kernel(native: Path) -> Recorder:
    """The kernel recorder."""
    return recorder_or_skip(native, "kernel")


def unshared(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run unshare(1) with these words."""
    done = subprocess.run(["unshare", "--fork", *words], capture_output=True, text=True, timeout=600)
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


@pytest.mark.parametrize("depth", [1, 2])
def test_a_pid_namespace_has_its_own_numbers(
    scene: Callable[[str], Path], query: Query, manifest: Callable, depth: int
) -> None:
    """Every process and thread has the number by which it knows itself, also after an exec by another thread."""
    folder = scene(f"pid_namespace_{depth}")
    first, thread, child, after = map(int, (folder / "numbers").read_text().split())
    assert first == after < thread
    rec = folder / "rec"
    capture = manifest(rec)["captures"][0]
    assert (capture["recorder"], capture["lost"], capture["complete"]) == ("kernel", 0, True)
    ended = query(rec, "SELECT pid, tid, ppid, exit_code FROM processes ORDER BY start_ts_ns, task_id")
    # The thread goes on as the first of its process, whose life ends with it.
    assert [(pid, tid) for pid, tid, _, _ in ended] == [(first, first), (first, thread), (child, child)]
    assert [(ppid, code) for _, _, ppid, code in ended] == [(None, 7), (None, None), (first, 3)]
    calls = "SELECT tid, count(*) FROM calls JOIN processes USING (task_id) WHERE requested_bytes = {} GROUP BY tid"
    assert query(rec, calls.format(1111)) == [(thread, 5)]
    assert query(rec, calls.format(2222)) == [(child, 6)]


def test_processes_and_all_of_a_pid_namespace(
    kernel: Recorder, tmp_path: Path, query: Query, manifest: Callable
) -> None:
    """By the number that one has there; nothing of what runs outside, where another has the same number."""
    script = """
        sh -c 'while :; do cat /dev/null; done' & busy=$!
        "$0" record --with kernel -o "$1/one" -p $busy --for 1s
        "$0" record --with kernel -o "$1/all" -a --for 1s
        kill $busy; echo $busy"""
    done = unshared("--pid", "--mount-proc", "sh", "-c", script, kernel.native, tmp_path)
    busy = int(done.stdout)
    assert "only processes of this PID namespace" in done.stderr
    first = query(tmp_path / "one", "SELECT DISTINCT pid FROM processes WHERE ppid IS NULL OR ppid = 1")
    assert first == [(busy,)], query(
        tmp_path / "one", "SELECT * FROM processes WHERE ppid IS NULL OR ppid = 1"
    )
    assert query(tmp_path / "one", "SELECT count(*) > 100 FROM calls") == [(True,)]
    pids = {pid for (pid,) in query(tmp_path / "all", "SELECT DISTINCT pid FROM processes")}
    assert {1, busy} <= pids
    # Numbers begin anew in a namespace.
    assert max(pids) < 100_000
    assert query(tmp_path / "all", "SELECT count(*) FROM processes WHERE pid = 0") == [(0,)]


def test_a_proc_of_another_pid_namespace_is_refused(recorder: Recorder, tmp_path: Path) -> None:
    """What is read there would be about other processes."""
    done = unshared("--pid", *recorder.command(tmp_path / "rec", "true"))
    assert (done.returncode, (tmp_path / "rec").exists()) == (2, False)
    assert "hint: mount one of this namespace" in done.stderr
