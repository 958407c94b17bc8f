"""CPU time that is used for a run by others than its processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sysdock.experiment import one_run
from sysdock.experiment.one_run import run_once
from sysdock.experiment.own_cpu import OwnCpu, own_cpu
from sysdock.library import Reject, Workload

# It computes for a second of CPU time in a child, tells that by a file, and stays.
SERVER = """
import os, sys, time
for _ in range(2):
    if os.fork() == 0:
        while time.process_time() < 0.5:
            pass
        os._exit(0)
    os.wait()
open(sys.argv[1], 'w').close()
time.sleep(600)
"""


def test_a_server_counts_with_what_it_waited_for(tmp_path: Path) -> None:
    server = subprocess.Popen([sys.executable, "-c", SERVER, tmp_path / "done"])
    try:
        before = own_cpu([server.pid, 1 << 30])
        while not (tmp_path / "done").exists():
            assert server.poll() is None
        used = own_cpu([server.pid]).servers - before.servers
        # Ticks are rounded, and the server may have begun before.
        assert used * 10_000_000 >= 700_000_000
        assert own_cpu([]).servers == 0
    finally:
        server.kill()
        server.wait()


def test_kernel_threads_that_end_are_left_out() -> None:
    before = OwnCpu({(2, 10): 5, (3, 10): 1000}, 0)
    after = OwnCpu({(2, 10): 7, (3, 99): 4}, 0)
    assert after.since(before) == 6 * 10_000_000
    assert own_cpu([]).kernel


@pytest.mark.parametrize(("ticks", "reason"), [(0, "experiment/other_programs"), (190, None)])
def test_only_what_others_use_disturbs_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ticks: int, reason: str | None
) -> None:
    used = {"foreign_cpu_ns": 2_000_000_000 * (os.cpu_count() or 1), "steal_ns": 0, "swapped_pages": 0}
    result = {"timed_out": False, "signal": None, "exit_code": 0, "started_ns": 0, "elapsed_ns": 10**9}
    monkeypatch.setattr(one_run, "measure", lambda *_, **__: {**result, "machine": dict(used)})
    states = iter([OwnCpu({}, 0), OwnCpu({}, ticks * (os.cpu_count() or 1))])
    monkeypatch.setattr(one_run, "own_cpu", lambda _: next(states))
    run = run_once(Workload("w", "w", "w", ("true",)), {}, tmp_path, devices=(), reject=Reject())
    assert (run.reason and run.reason.code) == reason
