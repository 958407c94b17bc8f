"""The end of a warm-up is where the values change last; a series without one is steady from its start."""

import random

import pytest
from sysdock.experiment.warm_up import LEAST, steady_from


def series(*parts: tuple[int, float], noise: float = 0.05, seed: int = 1) -> list[float]:
    """Parts of so many values around a level."""
    drawn = random.Random(seed)
    return [level * drawn.gauss(1, noise) for count, level in parts for _ in range(count)]


def test_a_step_is_found_where_it_is() -> None:
    assert steady_from(series((10, 50), (40, 100))) == 10


def test_a_ramp_ends_where_it_ends() -> None:
    ramp = [(1, 50 + 5.0 * step) for step in range(10)]
    start = steady_from(series(*ramp, (60, 100)))
    assert start is not None
    assert 5 <= start <= 12


def test_a_run_that_keeps_changing_is_not_steady() -> None:
    assert steady_from([100 + 2.0 * step for step in range(60)]) is None


def test_a_run_that_changes_near_its_end_is_not_steady() -> None:
    assert steady_from(series((40, 100), (15, 60))) is None


def test_what_is_steady_from_the_start_is_found_so_in_99_of_100() -> None:
    late = sum(steady_from(series((40, 100), seed=seed)) != 0 for seed in range(300))
    assert late <= 9


def test_equal_values_are_steady() -> None:
    assert steady_from([7.0] * 30) == 0


@pytest.mark.parametrize("count", [0, 1, LEAST - 1])
def test_few_values_say_nothing(count: int) -> None:
    assert steady_from([1.0] * count) is None
