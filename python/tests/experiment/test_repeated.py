"""Two commands in turns: the test and the interval against a slow second implementation, and that nothing is seen where nothing is."""

from __future__ import annotations

import itertools
import math
import random
import statistics

import pytest
from sysdock.errors import UserError
from sysdock.experiment.repeated import LEAST_ROUNDS, judge, run_in_turns


def slow_p(differences: list[float]) -> float:
    """By all signs that the ranks could have: no ties, no zeros."""
    ranks = sorted(range(len(differences)), key=lambda index: abs(differences[index]))
    rank = {index: place + 1 for place, index in enumerate(ranks)}
    seen = sum(rank[index] for index, value in enumerate(differences) if value > 0)
    sums = [
        sum(place + 1 for place, sign in enumerate(signs) if sign)
        for signs in itertools.product((False, True), repeat=len(differences))
    ]
    below = sum(total <= seen for total in sums) / len(sums)
    above = sum(total >= seen for total in sums) / len(sums)
    return min(1.0, 2 * min(below, above))


@pytest.mark.parametrize("seed", range(20))
def test_p_is_that_of_all_signs(seed: int) -> None:
    drawn = random.Random(seed)
    differences = [drawn.gauss(0.3, 1) for _ in range(drawn.randint(3, 11))]
    assert judge(differences).p == pytest.approx(slow_p(differences))


@pytest.mark.parametrize("seed", range(10))
def test_the_interval_holds_what_the_test_does_not_rule_out(seed: int) -> None:
    drawn = random.Random(seed)
    differences = [drawn.gauss(0.1, 0.2) for _ in range(10)]
    verdict = judge(differences)
    for bound, outwards in ((verdict.low, -1), (verdict.high, 1)):
        inside, outside = (math.log(bound) - outwards * step for step in (1e-9, -1e-9))
        assert judge([value - inside for value in differences]).p > 0.01
        assert judge([value - outside for value in differences]).p <= 0.01
    assert verdict.low < verdict.ratio < verdict.high


def test_fewer_rounds_prove_nothing() -> None:
    assert judge([0.5] * LEAST_ROUNDS).is_different
    few = judge([0.5] * (LEAST_ROUNDS - 1))
    assert (few.is_different, few.low, few.high) == (False, None, None)
    assert few.ratio == pytest.approx(math.exp(0.5))


def test_what_is_the_same_is_seldom_called_different() -> None:
    drawn = random.Random(7)
    found = [judge([drawn.gauss(0, 0.3) for _ in range(10)]).is_different for _ in range(2000)]
    assert statistics.mean(found) < 0.02


def test_both_run_in_each_round(tmp_path) -> None:
    log = tmp_path / "log"
    rounds = run_in_turns(f"echo a >>{log}", f"echo b >>{log}", 9, 1)
    words = log.read_text().split()
    assert words[:2] == ["a", "b"]
    turns = [set(words[place : place + 2]) for place in range(2, len(words), 2)]
    assert turns == [{"a", "b"}] * 9
    assert (len(rounds.a), len(rounds.b)) == (9, 9)
    # Not always in the same order.
    assert len({tuple(words[place : place + 2]) for place in range(2, len(words), 2)}) == 2


def test_a_command_that_fails_is_no_measurement() -> None:
    with pytest.raises(UserError, match="status 3"):
        run_in_turns("true", "exit 3", 8, 1)
