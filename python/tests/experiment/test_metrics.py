"""The metrics of a run, from the counters that were measured."""

from __future__ import annotations

import pytest
from sysdock.experiment.one_run import metrics_of

MS = 1_000_000


def undelayed_ms(elapsed: float, cpu: float, delay: float, threads: int) -> float | None:
    """Elapsed time without waiting for a CPU [ms], None: not known."""
    counters = {"elapsed_ns": elapsed * MS, "user_ns": cpu * MS, "system_ns": 0, "run_delay_ns": delay * MS}
    seconds = metrics_of({**counters, "threads": threads}).get("undelayed_s")
    return None if seconds is None else 1000 * seconds


def test_waiting_for_a_cpu_is_taken_from_the_time_of_one_thread() -> None:
    assert undelayed_ms(20, 5, 10, threads=1) == pytest.approx(10)
    assert undelayed_ms(20, 5, 10, threads=9) == pytest.approx(10)


def test_the_delay_of_the_launch_is_no_reason_to_know_nothing() -> None:
    # As measured: 0.25 ms of the delay lie before the command is let go.
    assert undelayed_ms(8.746, 4.689, 4.307, threads=1) == pytest.approx(4.689)
    assert undelayed_ms(8.746, 4.689, 4.307, threads=9) == pytest.approx(4.689)
    assert undelayed_ms(5, 4.5, 3, threads=1) == pytest.approx(4.5)


def test_with_threads_that_waited_side_by_side_it_is_not_known() -> None:
    assert undelayed_ms(20, 15, 10, threads=4) is None
    assert "undelayed_s" not in metrics_of({"elapsed_ns": MS, "user_ns": MS, "system_ns": 0})
