"""Runs at the same time: each on its own CPUs, all ended together, refused where they cannot be."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from sysdock.analysis import Session
from sysdock.cli import sysdock
from sysdock.errors import UserError
from sysdock.experiment.definition import problems
from sysdock.experiment.one_off import of_commands
from sysdock.experiment.running import cpu_shares
from sysdock.library import Library
from sysdock.library.experiments import Factor
from sysdock.recording import Recording

CPUS = sorted(os.sched_getaffinity(0))
needs_two = pytest.mark.skipif(len(CPUS) < 2, reason="a duet needs two CPUs")


@needs_two
def test_cpus_are_shared_out_and_nobody_has_those_of_another() -> None:
    shares = [{int(cpu) for cpu in share.split(",")} for share in cpu_shares(2)]
    assert shares[0].isdisjoint(shares[1])
    assert len(shares[0]) == len(shares[1]) == len(CPUS) // 2


def test_more_runs_than_cpus_are_refused() -> None:
    with pytest.raises(UserError, match=f"needs as many CPUs, and there are {len(CPUS)}"):
        cpu_shares(len(CPUS) + 1)


def test_scenarios_that_differ_in_settings_cannot_run_at_once() -> None:
    experiment = of_commands(["a", "b"], blocks=8, metric="cpu_s", margin=0.01, minutes=1, duet=True)
    setting = Factor("swappiness", ("1", "2"), "sysctl:vm.swappiness", "w", "w")
    assert problems(Library(), experiment) == []
    wrong = problems(Library(), replace(experiment, factors=(*experiment.factors, setting)))
    assert any("cannot differ in settings" in each for each in wrong)


@needs_two
def test_runs_of_a_block_are_at_the_same_time_on_other_cpus(tmp_path: Path) -> None:
    """Each command writes when it was there and on which CPUs; the two of a block overlap and share none."""
    log = tmp_path / "log"
    command = f"{{ taskset -p $$ | sed 's/.*: //'; sleep 0.3; }} | tr '\\n' ' ' >> {log}.$$; true"
    words = ["experiment", "compare", "--duet", "--blocks", "3", "-o", str(tmp_path / "rec"), "--"]
    done = CliRunner().invoke(sysdock, [*words, command, f"{command} "], standalone_mode=False)
    assert done.exception is None
    masks = {path.read_text().strip() for path in tmp_path.glob("log.*")}
    assert len(masks) == 2
    low, high = (int(mask, 16) for mask in masks)
    assert low & high == 0
    with Session(Recording.open(tmp_path / "rec")) as session:
        sql = (
            "SELECT block, min(ts_ns + dur_ns) - max(ts_ns) FROM experiment_runs "
            "WHERE kind = 'measured' GROUP BY block"
        )
        overlaps = session.fetch(sql)
        checks = {name for (name,) in session.fetch("SELECT name FROM experiment_checks")}
    assert len(overlaps) == 3
    assert min(overlap for _, overlap in overlaps) > 0
    assert "order" not in checks


@needs_two
def test_ctrl_c_ends_all_of_them(tmp_path: Path) -> None:
    sleeps = ["sleep 86.25", "sleep 87.25"]
    words = [
        sys.executable,
        "-m",
        "sysdock",
        "experiment",
        "compare",
        "--duet",
        "--blocks",
        "8",
        "--",
        *sleeps,
    ]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL, cwd=tmp_path)

    def running() -> int:
        found = 0
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal():
                try:
                    found += bool(re.fullmatch(rb"sleep\0008[67]\.25\000", (folder / "cmdline").read_bytes()))
                except OSError:
                    continue
        return found

    while running() < 2:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=600) == 130
    assert running() == 0
