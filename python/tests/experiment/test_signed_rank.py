"""The signed-rank test against a slow second implementation: p, interval, ties and zeros."""

from __future__ import annotations

import itertools
import random
import statistics

import pytest
from sysdock.experiment.signed_rank import estimate, interval, p_value, smallest_p


def slow_p(differences: list[float]) -> float:
    """By all signs that the ranks could have; ranks are shared, and zeros have a rank and no side."""
    sizes = sorted(abs(value) for value in differences)
    rank = {size: statistics.mean(n for n, each in enumerate(sizes, 1) if each == size) for size in sizes}
    sided = [value for value in differences if value]
    if not sided:
        return 1.0
    seen = sum(rank[abs(value)] for value in sided if value > 0)
    sums = [
        sum(rank[abs(value)] for value, sign in zip(sided, signs, strict=True) if sign)
        for signs in itertools.product((False, True), repeat=len(sided))
    ]
    below = sum(total <= seen for total in sums) / len(sums)
    above = sum(total >= seen for total in sums) / len(sums)
    return min(1.0, 2 * min(below, above))


@pytest.mark.parametrize("seed", range(20))
def test_p_is_that_of_all_signs(seed: int) -> None:
    drawn = random.Random(seed)
    differences = [drawn.gauss(0.3, 1) for _ in range(drawn.randint(3, 11))]
    assert p_value(differences) == pytest.approx(slow_p(differences))


@pytest.mark.parametrize("seed", range(40))
def test_p_is_exact_with_ties_and_zeros(seed: int) -> None:
    drawn = random.Random(seed)
    differences = [float(drawn.randint(-2, 4)) for _ in range(drawn.randint(1, 10))]
    assert p_value(differences) == pytest.approx(slow_p(differences))


def test_counts_that_never_differ_say_nothing() -> None:
    assert p_value([0.0] * 12) == 1.0
    assert p_value([]) == 1.0


def test_counts_that_always_differ_alike_decide_with_eight_blocks() -> None:
    assert p_value([2.0] * 8) == smallest_p(8) < 0.01 < p_value([2.0] * 7)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("alpha", [0.01, 0.05])
def test_the_interval_holds_what_the_test_does_not_rule_out(seed: int, alpha: float) -> None:
    drawn = random.Random(seed)
    differences = [drawn.gauss(0.1, 0.2) for _ in range(10)]
    bounds = interval(differences, alpha)
    assert bounds
    for bound, outwards in zip(bounds, (-1, 1), strict=True):
        inside, outside = (bound - outwards * step for step in (1e-9, -1e-9))
        assert p_value([value - inside for value in differences]) > alpha
        assert p_value([value - outside for value in differences]) <= alpha
    assert bounds[0] < estimate(differences) < bounds[1]


def test_too_few_have_no_interval() -> None:
    assert interval([0.5] * 7, 0.01) is None
    assert interval([0.5] * 8, 0.01) == (0.5, 0.5)


def test_what_is_the_same_is_seldom_called_different() -> None:
    drawn = random.Random(7)
    found = [p_value([drawn.gauss(0, 0.3) for _ in range(10)]) <= 0.01 for _ in range(2000)]
    assert statistics.mean(found) < 0.02
