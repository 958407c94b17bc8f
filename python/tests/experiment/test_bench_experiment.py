"""The tool that measures how often verdicts are right: its parts in short, and what they print."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[3] / "tools" / "bench.d" / "experiment"
sys.path.insert(0, f"{TOOL}.d")

import disturbed_runs  # noqa: E402
import recorded_runs  # noqa: E402
import simulated_experiments  # noqa: E402
import slower_runs  # noqa: E402
import unchanged_runs  # noqa: E402
import welch  # noqa: E402
from goals import Progress, Result, table  # noqa: E402
from interference import PATTERNS  # noqa: E402
from sysdock.experiment.plan import level  # noqa: E402

SEED = 7


@pytest.fixture
def needs_root() -> None:
    """Skips where nothing can be mounted and no control group be made."""
    if os.geteuid() != 0:
        pytest.skip("loop devices and control groups need root")


def by_goal(results: list[Result]) -> list[bool]:
    """Whether the goals were met, of those that have one."""
    return [each.is_met for each in results if each.is_met is not None]


def test_planned_looks_claim_a_change_by_chance_as_rarely_as_one_look() -> None:
    results = list(simulated_experiments.peeking(400, SEED, Progress()))
    claims = [each.value for each in results if each.is_met is not None]
    assert len(claims) == 3
    # At most 4 of 400 experiments are expected; with this seed there are fewer than 12.
    assert max(claims) < 0.03
    experiment = simulated_experiments.experiment_of(None)
    assert level(experiment.plan, experiment.claim.alpha) < experiment.claim.alpha


def test_slow_downs_are_found_and_the_smallest_visible_one_is_right() -> None:
    results = list(simulated_experiments.power(100, SEED, Progress()))
    assert min(each.value for each in results if each.goal.startswith("at least")) > 0.8
    assert all(by_goal([each for each in results if "smallest visible" in each.what]))


def test_goals_that_were_missed_are_said_and_end_with_status_1() -> None:
    results = [Result("power", "a", "12 %", 0.12, "at least 90 %", False), Result("power", "b", "1", 1.0)]
    assert "| a | 12 % | at least 90 % | **no** |" in table(results)
    words = [sys.executable, TOOL, "power", "--number", "1", "--seed", "3", "--format", "json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    rows = json.loads(done.stdout)
    assert {row["part"] for row in rows} == {"power"}
    assert done.returncode == int(any(row["is_met"] is False for row in rows))


def made_series(folder: Path, runs: int) -> None:
    """Series in the folder as `--keep` leaves them; the machine gets slower from run to run."""
    numbers = random.Random(SEED)
    for pattern in PATTERNS:
        for workload in recorded_runs.WORKLOADS:
            values = {
                metric: [(1 + n / runs) * numbers.lognormvariate(0, 0.02) for n in range(runs)]
                for metric in recorded_runs.METRICS
            }
            recorded_runs.kept(recorded_runs.Series(workload, pattern, (0.0, 0.0), values), folder)


def test_a_command_does_not_differ_from_itself_though_the_machine_gets_slower(tmp_path: Path) -> None:
    made_series(tmp_path, 200)
    results = list(unchanged_runs.same_command(160, 200, SEED, tmp_path, tmp_path, Progress()))
    whole = [each for each in results if each.goal]
    assert [each.what for each in whole] == ["all, elapsed_s", "all, cpu_s"]
    assert max(each.value for each in whole) < 0.05
    assert all(each.details["first A, then B, Welch"].startswith("100.00 %") for each in whole)


def test_intervals_hold_effects_that_were_injected_into_kept_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_series(tmp_path, 200)
    # Only the series of one workload.
    monkeypatch.setattr(recorded_runs, "WORKLOADS", {"CPU": recorded_runs.WORKLOADS["CPU"]})
    results = list(unchanged_runs.calibration(60, 200, SEED, tmp_path, tmp_path, Progress()))
    covered = [each.value for each in results if each.what.startswith("95 %")]
    assert len(covered) == 3 * len(PATTERNS)
    assert min(covered) > 0.85
    assert max(each.value for each in results if each.what.startswith('"equivalent"')) < 0.1


@pytest.mark.parametrize("workload", recorded_runs.WORKLOADS)
def test_a_series_of_real_runs_is_kept_and_read_again(workload: str, tmp_path: Path) -> None:
    where = (workload, "CPU bursts", 3, tmp_path / "kept", tmp_path, Progress())
    series = recorded_runs.series_of(*where)
    assert series.count == 3
    assert min(series.values["elapsed_s"]) > 0
    assert recorded_runs.series_of(*where) == series


def test_welch_has_the_values_of_published_tables() -> None:
    # Student's t with 18 degrees of freedom is 2.101 at .05, and 2.878 at .01.
    ten = [float(n) for n in range(10)]
    error = (2 * 82.5 / 9 / 10) ** 0.5
    for t, p in ((2.101, 0.05), (2.878, 0.01), (0.0, 1.0)):
        assert welch.p_value(ten, [n + t * error for n in ten]) == pytest.approx(p, rel=2e-3)
    assert welch.p_value([1.0, 1.0], [1.0, 1.0]) == 1.0


@pytest.mark.root
@pytest.mark.usefixtures("needs_root")
def test_an_extra_fsync_is_found_by_the_flushes_of_its_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slower_runs, "_TURNS", 100_000)
    results = list(slower_runs.detect(1, SEED, tmp_path, Progress(), blocks=12))
    whats = [each.what for each in results]
    assert [what for what in whats if what.startswith("2 %, cpu_s")]
    flushes = {each.what: each.value for each in results if "device_flushes" in each.what}
    assert flushes.pop("control (A/A): fsync, device_flushes") is None
    assert set(flushes.values()) == {1.0}


@pytest.mark.root
@pytest.mark.usefixtures("needs_root")
def test_runs_under_a_cpu_limit_are_rejected_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYSDOCK_STATE", str(tmp_path / "journals"))
    results = list(disturbed_runs.rejects(1, SEED, tmp_path, Progress(), swaps=False))
    found = {each.what: each.value for each in results}
    busy = {each.what: each.details.get("with the work of others") for each in results}
    assert found["a CPU limit of the control group"] == 1.0
    # However busy the machine is: that is more than the rule allows.
    assert busy["CPU hogs on all CPUs"] == "100.00 % (1 of 1)"
    assert set(disturbed_runs.HOGS) - {"nothing"} < set(found)
    assert not list((tmp_path / "journals").iterdir())
