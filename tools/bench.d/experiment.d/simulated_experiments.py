"""Experiments on numbers that were drawn: false claims, power, and whether intervals hold what they promise.

Only the numbers are drawn. What is made of them comes from the engine: its level, its looks, its judge.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from goals import Progress, Result, at_least, at_most, share
from sysdock.experiment import one_off
from sysdock.experiment.power import POWER
from sysdock.experiment.results import claim_of
from sysdock.experiment.verdicts import CHANGED, Claim, Samples, Verdict, is_decided, judge
from sysdock.library import Experiment

Pair = tuple[float, float]
# A run relative to the usual one, as a logarithm.
Noise = Callable[[random.Random], float]
MARGIN = 0.01
WITHIN = 0.25
_STEPS = 10
COVERED = (0.93, 0.97)


def normal(cv: float) -> Noise:
    """Normal noise: `cv` is the coefficient of variation of a run."""
    return lambda numbers: numbers.gauss(0, cv)


def with_outliers(cv: float) -> Noise:
    """One run in twelve takes up to three times as long."""

    def draw(numbers: random.Random) -> float:
        late = math.log(numbers.uniform(1.1, 3)) if numbers.random() < 1 / 12 else 0.0
        return numbers.gauss(0, cv) + late

    return draw


def in_ticks(cv: float) -> Noise:
    """Times that are known in ticks of 2 % only: many differences are alike, or zero."""
    return lambda numbers: math.log(round(50 * math.exp(numbers.gauss(0, cv))) / 50)


def experiment_of(blocks: int | None, margin: float = MARGIN) -> Experiment:
    """Two commands, as `sysdock experiment compare` has them. blocks None: looks after 10, 20 and 40."""
    return one_off.of_commands(
        ["a", "b"], blocks=blocks, metric="elapsed_s", margin=margin, minutes=60, explain=False
    )


def samples_of_pairs(pairs: Sequence[Pair]) -> Samples:
    """The blocks of two scenarios: values of the baseline and of the other one."""
    before, after = zip(*pairs, strict=True)
    return Samples(1, "command", "B", "elapsed_s", True, False, tuple(before), tuple(after))


def judged(experiment: Experiment, pairs: Sequence[Pair], claim: Claim | None = None) -> Verdict:
    """The verdict at the first look that decides, or at the last one, as the engine would stop.

    `claim`: another level than the engine's own.
    """
    claim = claim or claim_of(experiment)
    for look in experiment.plan.looks:
        verdicts = judge([samples_of_pairs(pairs[:look])], claim)
        if is_decided(verdicts):
            break
    return verdicts[0]


def is_found(verdict: Verdict) -> bool:
    """A slow-down that was found, as one."""
    return verdict.verdict == CHANGED and (verdict.ratio or 0) > 1


def _drawn(noise: Noise, blocks: int, effect: float, numbers: random.Random) -> list[Pair]:
    return [(math.exp(noise(numbers)), (1 + effect) * math.exp(noise(numbers))) for _ in range(blocks)]


def peeking(number: int, seed: int, progress: Progress) -> Iterator[Result]:
    """Claims of a change where there is none, over all looks of an experiment."""
    kinds = {
        "normal noise, CV 5 %": normal(0.05),
        "one run in twelve late": with_outliers(0.05),
        "times in ticks": in_ticks(0.03),
    }
    experiment = experiment_of(None, margin=0)
    looks = ", ".join(map(str, experiment.plan.looks))
    unadjusted = replace(claim_of(experiment), alpha=experiment.claim.alpha)
    for words, noise in kinds.items():
        numbers = random.Random(f"{seed}/peeking/{words}")
        claims = naive = 0
        for done in range(number):
            pairs = _drawn(noise, experiment.plan.looks[-1], 0, numbers)
            claims += judged(experiment, pairs).verdict == CHANGED
            naive += judged(experiment, pairs, unadjusted).verdict == CHANGED
            progress(f"peeking: {words}, {done + 1:,} of {number:,}")
        yield at_most("peeking", f"looks after {looks}; {words}", claims, number, 0.01)
        yield Result(
            "peeking", f"the same, each look at the level of {unadjusted.alpha:g}",
            share(naive, number), naive / number,
        )  # fmt: skip


def power(number: int, seed: int, progress: Progress) -> Iterator[Result]:
    """Slow-downs that are found, and whether the smallest visible effect that is printed is the right one."""
    # (effect, blocks, blocks it was to take; None: the looks as they are by default)
    for effect, blocks, most in ((0.02, 12, 12), (0.02, None, 20), (0.01, 40, 40), (0.01, None, 40)):
        experiment = experiment_of(blocks)
        numbers = random.Random(f"{seed}/power/{effect}/{blocks}")
        found = 0
        used = []
        for done in range(number):
            verdict = judged(experiment, _drawn(normal(0.01), experiment.plan.looks[-1], effect, numbers))
            found += is_found(verdict) and verdict.blocks <= most
            used.append(verdict.blocks)
            progress(f"power: {100 * effect:g} % slower, {done + 1:,} of {number:,}")
        plan = f"one look after {blocks}" if blocks else "looks after 10, 20 and 40"
        words = f"{100 * effect:g} % slower at a CV of 1 %, {plan}: found within {most} blocks"
        yield at_least("power", words, found, number, 0.9, **{"blocks, mean": statistics.fmean(used)})
    for blocks, alpha in ((12, 0.01), (40, 0.01), (10, 0.004), (20, 0.004), (40, 0.004)):
        yield _visible(blocks, alpha, max(number // 8, 20), seed, progress)


def _visible(blocks: int, alpha: float, number: int, seed: int, progress: Progress) -> Result:
    """What the engine prints as the smallest visible effect, against the one that is found nine times in ten."""
    numbers = random.Random(f"{seed}/visible/{blocks}/{alpha}")
    drawn = [_drawn(normal(0.01), blocks, 0, numbers) for _ in range(number)]
    progress(f"power: smallest visible effect with {blocks} blocks")
    printed, true = visible_effects(drawn, alpha)
    error = statistics.median(printed) / true - 1
    near = sum(abs(value / true - 1) <= WITHIN for value in printed)
    return Result(
        "power", f"smallest visible effect, {blocks} blocks at level {alpha:g}: median of what is printed",
        f"{100 * statistics.median(printed):.2f} % for {100 * true:.2f} % ({100 * error:+.0f} %)", error,
        "within 25 %", abs(error) <= WITHIN, {
            "single experiments within 25 %": share(near, number),
        },
    )  # fmt: skip


def visible_effects(unchanged: Sequence[Sequence[Pair]], alpha: float) -> tuple[list[float], float]:
    """For experiments without an effect: the smallest visible effect that each prints, and the effect found in nine of ten."""
    claim = Claim(alpha, 0.0)

    def found(effect: float) -> int:
        slower = ([(before, after * (1 + effect)) for before, after in pairs] for pairs in unchanged)
        return sum(is_found(judge([samples_of_pairs(pairs)], claim)[0]) for pairs in slower)

    printed = [judge([samples_of_pairs(pairs)], claim)[0].smallest_visible or 0.0 for pairs in unchanged]
    low, high = 0.0, 4 * max(printed)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if found(middle) >= POWER * len(unchanged) else (middle, high)
    return printed, high
