"""The rules by which blocks become verdicts, each on numbers that were drawn for it."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import replace

import pytest
from sysdock.experiment.power import smallest_visible
from sysdock.experiment.signed_rank import p_value
from sysdock.experiment.validity import Placed, check_case, invalidated
from sysdock.experiment.verdicts import Claim, Samples, Verdict, judge, outliers
from sysdock.sentences import fact

CLAIM = Claim(0.01, 0.01)


def samples(
    before: Sequence[float],
    after: Sequence[float],
    *,
    scenario: str = "b",
    primary: bool = True,
    case: int = 1,
) -> Samples:
    """Samples of one metric."""
    metric = "elapsed_s" if primary else f"m{scenario}"
    return Samples(case, "w", scenario, metric, primary, scenario == "A/A", tuple(before), tuple(after))


def drawn(effect: float, cv: float, blocks: int, seed: int | str) -> Samples:
    """A scenario that takes 1 + `effect` times as long; the level of the machine wanders from block to block."""
    numbers = random.Random(seed)
    levels = list(itertools.accumulate(numbers.gauss(0, 0.05) for _ in range(blocks)))
    before = [math.exp(level) * (1 + numbers.gauss(0, cv)) for level in levels]
    after = [math.exp(level) * (1 + effect) * (1 + numbers.gauss(0, cv)) for level in levels]
    return samples(before, after)


def one(some: Samples, claim: Claim = CLAIM) -> Verdict:
    """Its verdict, alone."""
    (verdict,) = judge([some], claim)
    return verdict


def test_a_change_that_is_there_is_found_in_spite_of_drift() -> None:
    found = [one(drawn(0.02, 0.01, 12, seed)).verdict for seed in range(200)]
    assert found.count("changed") >= 170


def test_what_did_not_change_is_seldom_called_changed() -> None:
    found = [one(drawn(0.0, 0.02, 12, seed)).verdict for seed in range(1000)]
    assert found.count("changed") <= 20


def test_what_is_the_same_is_equivalent_and_what_nearly_differs_is_not() -> None:
    same = [one(drawn(0.0, 0.003, 20, seed)).verdict for seed in range(100)]
    assert same.count("equivalent") >= 95
    at_the_margin = [one(drawn(0.01, 0.003, 20, seed)).verdict for seed in range(200)]
    assert at_the_margin.count("equivalent") <= 4


def test_a_small_change_that_is_sure_is_equivalent_within_the_margin() -> None:
    verdict = one(samples([1.0] * 12, [1.002 + 0.0001 * n for n in range(12)]))
    assert (verdict.verdict, verdict.p < 0.001) == ("equivalent", True)


def test_too_few_blocks_say_how_many_it_takes() -> None:
    verdict = one(samples([1.0] * 7, [2.0] * 7))
    assert (verdict.verdict, verdict.reason) == (
        "inconclusive",
        fact("experiment/too_few_blocks", blocks=7, least=8),
    )
    assert verdict.smallest_visible is None


def test_intervals_hold_what_was_put_in() -> None:
    inside = 0
    for seed in range(500):
        verdict = one(drawn(0.05, 0.02, 10, f"i{seed}"), Claim(0.05, 0.01))
        assert verdict.ratio_low is not None
        assert verdict.ratio_high is not None
        inside += verdict.ratio_low <= 1.05 <= verdict.ratio_high
    assert 0.93 <= inside / 500 <= 0.98


def test_counts_with_zeros_are_compared_as_differences() -> None:
    verdict = one(samples([2.0] * 10, [0.0] * 10))
    assert (verdict.verdict, verdict.ratio, verdict.difference) == ("changed", None, -2.0)


def test_a_metric_that_is_missing_is_invalid() -> None:
    assert one(samples([], [])).verdict == "invalid"


def test_a_verdict_that_rests_on_outliers_is_none() -> None:
    assert outliers([1.0, 1.01, 0.99, 1.02, 5.0]) == [False, False, False, False, True]
    # Sixteen blocks lean to one side, which chance does; four outliers on that side make it significant.
    lean = [37, 40, 12, -4, -11, 12, -9, -18, 15, 14, 22, -7, 11, 10, -19, 22]
    after = [math.exp(value / 1000) for value in [*lean, 900, 950, 990, 970]]
    verdict = one(samples([1.0] * 20, after))
    assert (verdict.p <= 0.01, verdict.verdict) == (True, "inconclusive")
    assert verdict.reason == fact("experiment/rests_on_outliers")
    # Outliers in addition to blocks that differ anyway change nothing.
    numbers = random.Random(3)
    small = [0.02 + numbers.gauss(0, 0.002) for _ in range(10)]
    assert (
        one(samples([1.0] * 10, [math.exp(v + (0.4 if n < 2 else 0)) for n, v in enumerate(small)])).verdict
        == "changed"
    )


def test_primary_metrics_are_one_family() -> None:
    alone = drawn(0.02, 0.01, 9, 5)
    assert one(alone).verdict == "changed"
    others = [drawn(0.0, 0.01, 9, seed) for seed in range(8)]
    first, *_ = judge([alone, *others], CLAIM)
    assert (first.verdict, first.p_adjusted) == ("inconclusive", pytest.approx(9 * first.p))


def test_secondary_metrics_are_judged_by_false_discoveries() -> None:
    some = [samples([1.0] * 14, [2.0] * 14, scenario=f"s{n}", primary=False) for n in range(160)]
    assert {each.verdict for each in judge(some, CLAIM)} == {"changed"}
    one_true = [
        *some[:1],
        *(samples([1.0] * 10, [1.0] * 10, scenario=f"t{n}", primary=False) for n in range(159)),
    ]
    first, *rest = judge(one_true, CLAIM)
    assert first.p_adjusted == pytest.approx(160 * first.p)
    assert {each.verdict for each in rest} == {"equivalent"}


def test_numbers_that_are_the_same_in_each_run_are_judged() -> None:
    def steps(before: float, after: float, blocks: int = 10) -> Samples:
        return samples([before] * blocks, [after] * blocks)

    same, less_than_the_margin, more = (
        one(steps(99_808, after)) for after in (99_808.0, 99_809.0, 138_136.0)
    )
    assert (same.verdict, same.p, same.smallest_visible) == ("equivalent", 1.0, 0.0)
    assert (same.ratio_low, same.ratio_high) == (1.0, 1.0)
    assert less_than_the_margin.verdict == "equivalent"
    assert (more.verdict, more.smallest_visible) == ("changed", 0.0)
    assert more.ratio_low == more.ratio_high == pytest.approx(138_136 / 99_808)
    # Ten blocks are the fewest with which five comparisons at once can be significant.
    for blocks, word in ((10, "changed"), (9, "inconclusive")):
        family = [steps(100, after, blocks) for after in (120.0, 900.0, 2000.0, 95.0, 110.0)]
        assert {each.verdict for each in judge(family, CLAIM)} == {word}
    runs = [Placed(block, 1 + n, "ab"[n], 99_808.0 + n) for block in range(1, 11) for n in range(2)]
    assert not any(check.invalid for check in check_case(1, runs, [], CLAIM))


def placed(effect_of_first: float, seed: int) -> list[Placed]:
    """Blocks of two runs, the first of which takes longer by `effect_of_first`."""
    numbers = random.Random(seed)
    found = []
    for block in range(1, 13):
        names = numbers.sample(["a", "b"], 2)
        for position, name in enumerate(names, 1):
            value = (1 + numbers.gauss(0, 0.005)) * (1 + effect_of_first * (position == 1))
            found.append(Placed(block, position, name, value))
    return found


def test_what_one_run_leaves_to_the_next_makes_a_case_invalid() -> None:
    checks = {each.check: each for each in check_case(1, placed(0.05, 1), [], CLAIM)}
    assert checks["order"].invalid is not None
    assert checks["order"].invalid.code == "experiment/first_run_differs"
    for factor, word in ((1.06, "invalid"), (2.0, "changed")):
        verdict = one(samples([1.0] * 10, [factor] * 10))
        assert verdict.verdict == "changed"
        (judged,) = invalidated([verdict], list(checks.values()))
        assert judged.verdict == word
        assert judged.reason == (checks["order"].invalid if word == "invalid" else None)
    # It is not known how far another metric is moved.
    other = replace(verdict, samples=replace(verdict.samples, is_primary=False))
    assert invalidated([other], list(checks.values()))[0].verdict == "invalid"
    [nothing] = invalidated([one(samples([], []))], list(checks.values()))
    assert (nothing.verdict, nothing.reason) == ("invalid", fact("experiment/no_run_has_metric"))


def test_blocks_without_carry_over_are_valid() -> None:
    found = [check_case(1, placed(0.0, seed), [], CLAIM) for seed in range(200)]
    assert sum(any(check.invalid for check in checks) for checks in found) <= 4


def test_a_baseline_that_differs_from_itself_forbids_claims() -> None:
    control, real = judge(
        [samples([1.0] * 10, [1.3] * 10, scenario="A/A"), samples([1.0] * 10, [2.0] * 10)], CLAIM
    )
    (check,) = check_case(1, [], [control, real], CLAIM)
    assert check.invalid is not None
    assert check.invalid == fact("experiment/baseline_differs")


def test_drift_is_said_and_forbids_nothing() -> None:
    runs = [Placed(block, 1 + n, "ab"[n], 1.01**block) for block in range(1, 11) for n in range(2)]
    drift = next(each for each in check_case(1, runs, [], CLAIM) if each.check == "drift")
    assert drift.invalid is None
    assert drift.effect == pytest.approx(1.01**9 - 1, rel=0.01)


def noise(blocks: int, numbers: random.Random, late: float = 0.0) -> list[float]:
    """Differences without an effect; the part `late` of them is four times as far out."""
    return [numbers.gauss(0, 1) * (4 if numbers.random() < late else 1) for _ in range(blocks)]


@pytest.mark.parametrize("late", [0.0, 0.1])
@pytest.mark.parametrize(("blocks", "alpha"), [(10, 0.01), (12, 0.01), (20, 0.004), (40, 0.004)])
def test_the_smallest_visible_effect_is_found_in_nine_of_ten(blocks: int, alpha: float, late: float) -> None:
    numbers = random.Random(blocks)
    printed = [smallest_visible(noise(blocks, numbers, late), blocks, alpha) for _ in range(41)]
    visible = statistics.median(each for each in printed if each is not None)
    shifted = ([visible + value for value in noise(blocks, numbers, late)] for _ in range(400))
    assert 0.75 <= statistics.mean(p_value(each) <= alpha for each in shifted) <= 0.97


def test_the_smallest_visible_effect_is_the_same_again_and_smaller_with_more_blocks() -> None:
    pilot = noise(8, random.Random(1))
    found = [smallest_visible(pilot, blocks, 0.004) for blocks in (10, 20, 40)]
    assert found == [smallest_visible(pilot, blocks, 0.004) for blocks in (10, 20, 40)]
    assert found == sorted(found, reverse=True)
    assert smallest_visible([5.0] * 12, 12, 0.01) == 0


def test_where_no_difference_is_significant_no_effect_is_visible() -> None:
    assert smallest_visible(noise(12, random.Random(1)), 7, 0.01) is None
    assert smallest_visible([1.0], 12, 0.01) is None


def noisy(scenario: str, effect: float, *, primary: bool = True) -> Samples:
    """Samples of 16 blocks with equal noise."""
    numbers = random.Random(7)
    before = [1 + numbers.gauss(0, 0.02) for _ in range(16)]
    after = [(1 + effect) * (1 + numbers.gauss(0, 0.02)) for _ in range(16)]
    return samples(before, after, scenario=scenario, primary=primary)


def test_the_smallest_visible_change_counts_what_else_is_judged() -> None:
    def visible(*others: Samples) -> float:
        [verdict, *_] = judge([noisy("b", 0.0), *others], CLAIM)
        assert verdict.smallest_visible is not None
        return verdict.smallest_visible

    alone = visible()
    # Ten others that are not significant leave a tenth of the level, ten that are leave all of it.
    assert visible(*(noisy(f"c{n}", 0.001) for n in range(10))) > 1.2 * alone
    assert visible(*(noisy(f"c{n}", 0.5) for n in range(10))) == alone
    # The control and other metrics are no comparisons of this family.
    assert visible(noisy("A/A", 0.0), noisy("c", 0.0, primary=False)) == alone


@pytest.mark.parametrize("primary", [True, False])
def test_the_level_is_the_one_at_which_a_p_value_becomes_significant(primary: bool) -> None:
    numbers = random.Random(8)
    for _ in range(300):
        number = numbers.randint(0, 6)
        effects = [numbers.choice([0.0, 0.01, 0.015, 0.3]) * numbers.random() for _ in range(number + 1)]
        some = [noisy(f"s{n}", effect, primary=primary) for n, effect in enumerate(effects)]
        for verdict in judge(some, CLAIM):
            is_significant = verdict.p_adjusted <= (CLAIM.alpha if primary else 0.05)
            assert is_significant == (verdict.p <= verdict.level)


def test_a_metric_that_no_run_gave_makes_no_other_less_visible() -> None:
    with_it = [noisy("b", 0.0, primary=False), samples([], [], scenario="c", primary=False)]
    levels = [verdict.level for verdict in judge(with_it, CLAIM)]
    assert levels[0] == judge(with_it[:1], CLAIM)[0].level == 0.05
