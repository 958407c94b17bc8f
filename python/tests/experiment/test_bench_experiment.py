"""The tool that measures how often verdicts are right: its parts in short, and what they print."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).resolve().parents[3] / "tools" / "bench-experiment"
sys.path.insert(0, f"{TOOL}.d")

import simulated_experiments  # noqa: E402
from goals import Progress, Result, table  # noqa: E402
from sysdock.experiment.plan import level  # noqa: E402

SEED = 7


def by_goal(results: list[Result]) -> list[bool]:
    """Whether the goals were met, of those that have one."""
    return [each.is_met for each in results if each.is_met is not None]


def test_planned_looks_claim_a_change_by_chance_as_rarely_as_one_look() -> None:
    results = list(simulated_experiments.peeking(1000, SEED, Progress()))
    claims = [each.value for each in results if each.is_met is not None]
    assert len(claims) == 3
    # Of 1,000 experiments, 10 are expected at most; 20 of them are less probable than 1 in 200.
    assert max(claims) < 0.02
    experiment = simulated_experiments.experiment_of(None)
    assert level(experiment.plan, experiment.claim.alpha) < experiment.claim.alpha


def test_slow_downs_are_found_and_the_smallest_visible_one_is_right() -> None:
    results = list(simulated_experiments.power(200, SEED, Progress()))
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
