"""Comparisons of a command with itself, on real runs: whatever is claimed is false.

The runs of a series are consecutive. Two neighbours are a block, and which of them is A is drawn by the engine's plan, for each comparison
anew: as both run the same command, that is the same as if it had been drawn before the runs. A comparison is a stretch of the series with enough
blocks for the last look. Next to it, the runs that the comparison used, by the common way: the first half is A, the second half is B, Welch's test at
.05. Nothing is rejected, as `sysdock experiment compare` rejects nothing.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import welch
from goals import Progress, Result, at_most, share
from interference import PATTERNS
from recorded_runs import METRICS, WORKLOADS, Series, all_series
from simulated_experiments import (
    COVERED,
    MARGIN,
    WITHIN,
    Pair,
    experiment_of,
    judged,
    normal,
    visible_effects,
)
from sysdock.experiment import plan as planned
from sysdock.experiment.verdicts import CHANGED, EQUIVALENT, Claim
from sysdock.library import Experiment

WELCH_LEVEL = 0.05
_INJECTED = (0.0, 0.01, 0.02, 0.05, 0.2)


def blocks_of(
    values: Sequence[float], start: int, experiment: Experiment, case: int, seed: int
) -> list[Pair]:
    """Blocks of neighbours from `start` on: values of A and of B, in the order that the plan draws."""
    found = []
    for block in range(1, experiment.plan.looks[-1] + 1):
        turns = planned.turns(experiment, case, block, 1, seed)
        own = {turn.scenario: values[start + 2 * (block - 1) + turn.position - 1] for turn in turns}
        found.append((own["A"], own["B"]))
    return found


def starts_of(series: Series, experiment: Experiment, number: int) -> list[int]:
    """Where comparisons begin: evenly over the series."""
    last = series.count - 2 * experiment.plan.looks[-1]
    return [2 * round(last / 2 * n / max(1, number - 1)) for n in range(number)]


def same_command(
    number: int, runs: int, seed: int, keep: Path | None, folder: Path, progress: Progress
) -> Iterator[Result]:
    """`number` comparisons in all for each metric, on `runs` runs of each workload under each pattern."""
    experiment = experiment_of(None)
    each = -(-number // (len(PATTERNS) * len(WORKLOADS)))
    counts: list[tuple[str, str, int, int, float]] = []
    for place, series in enumerate(all_series(runs, keep, folder, progress)):
        for metric in METRICS:
            claims, by_welch = _claims(
                series, metric, experiment, range(place * each, (place + 1) * each), seed
            )
            counts.append((series.pattern, metric, claims, by_welch, series.variation(metric)))
        if series.workload == list(WORKLOADS)[-1]:
            loads = f"{series.load[0]:.1f} to {series.load[1]:.1f}"
            for metric in METRICS:
                some = [count for count in counts if count[:2] == (series.pattern, metric)]
                yield _summed(f"{series.pattern}, {metric}", some, each, {"load at the end": loads})
    for metric in METRICS:
        yield _summed(f"all, {metric}", [count for count in counts if count[1] == metric], each, {})


def _claims(series: Series, metric: str, experiment: Experiment, cases: range, seed: int) -> tuple[int, int]:
    """Changes that are claimed by the engine, and by Welch's test on the same runs; of one comparison for each of the cases."""
    claims = by_welch = 0
    values = series.values[metric]
    # The number of a comparison is its case in the plan, so that each is drawn anew.
    for case, start in zip(cases, starts_of(series, experiment, len(cases)), strict=True):
        verdict = judged(experiment, blocks_of(values, start, experiment, case, seed))
        claims += verdict.verdict == CHANGED
        used = values[start : start + 2 * verdict.blocks]
        by_welch += welch.p_value(used[: verdict.blocks], used[verdict.blocks :]) < WELCH_LEVEL
    return claims, by_welch


def _summed(
    words: str, counts: Sequence[tuple[str, str, int, int, float]], each: int, details: dict[str, str | float]
) -> Result:
    claims, of = sum(count[2] for count in counts), each * len(counts)
    variations = [100 * count[4] for count in counts]
    own = {
        "CV of the workloads": f"{min(variations):.0f} to {max(variations):.0f} %",
        **details,
        "first A, then B, Welch": share(sum(count[3] for count in counts), of),
    }
    if words.startswith("all"):
        return at_most("aa", words, claims, of, 0.01, **own)
    return Result("aa", words, share(claims, of), claims / of, details=own)


def calibration(
    number: int, runs: int, seed: int, keep: Path | None, folder: Path, progress: Progress
) -> Iterator[Result]:
    """Effects injected into real runs: whether intervals hold them, and whether "equivalent" is said where they are not."""
    numbers = random.Random(f"{seed}/calibration")
    recorded = list(all_series(runs, keep, folder, progress))
    for pattern in PATTERNS:
        some = [series for series in recorded if series.pattern == pattern]
        for blocks in (12, 20, 40):
            progress(f"calibration: {pattern}, {blocks} blocks")
            yield _coverage(pattern, some, blocks, number, seed, numbers)
    for pattern in PATTERNS:
        some = [series for series in recorded if series.pattern == pattern]
        progress(f"calibration: equivalence, {pattern}")
        yield _equivalence(f"noise of runs, {pattern}", some, number, seed, numbers)
    for cv in (0.002, 0.005, 0.01):
        progress(f"calibration: equivalence, CV {cv}")
        yield _equivalence(
            f"normal noise, CV {100 * cv:g} %", [_made(cv, runs, numbers)], number, seed, numbers
        )
    for blocks in (12, 40):
        yield _visible(recorded, blocks, max(20, number // 16), seed, numbers, progress)


def _visible(
    recorded: Sequence[Series],
    blocks: int,
    number: int,
    seed: int,
    numbers: random.Random,
    progress: Progress,
) -> Result:
    """Series in which the smallest visible effect, as it is printed in the middle, is the one that is found nine times in ten."""
    experiment = experiment_of(blocks)
    errors = []
    for series in recorded:
        for metric in METRICS:
            progress(
                f"calibration: smallest visible effect, {blocks} blocks, {series.workload}, {series.pattern}"
            )
            alone = replace(series, values={metric: series.values[metric]})
            drawn = [_stretch([alone], experiment, 0, n, seed, numbers) for n in range(number)]
            printed, true = visible_effects(drawn, experiment.claim.alpha)
            errors.append(statistics.median(printed) / true - 1)
    near = sum(abs(error) <= WITHIN for error in errors)
    words = f"smallest visible effect, {blocks} blocks: series in which its median is right within {100 * WITHIN:g} %"
    details = {
        "error": f"{100 * min(errors):+.0f} to {100 * max(errors):+.0f} %, median {100 * statistics.median(errors):+.0f} %"
    }
    return Result(
        "calibration",
        words,
        share(near, len(errors)),
        near / len(errors),
        "all",
        near == len(errors),
        details,
    )


def _made(cv: float, runs: int, numbers: random.Random) -> Series:
    noise = normal(cv)
    return Series("", "", (0, 0), {"elapsed_s": [1 + noise(numbers) for _ in range(runs)]})


def _stretch(
    some: Sequence[Series], experiment: Experiment, effect: float, n: int, seed: int, numbers: random.Random
) -> list[Pair]:
    """Blocks of a random stretch of one of the series, in which B takes 1 + `effect` times as long."""
    series = numbers.choice(some)
    metric = numbers.choice(list(series.values))
    start = 2 * numbers.randrange(series.count // 2 - experiment.plan.looks[-1] + 1)
    pairs = blocks_of(series.values[metric], start, experiment, n, seed)
    return [(before, after * (1 + effect)) for before, after in pairs]


def _coverage(
    pattern: str, some: Sequence[Series], blocks: int, number: int, seed: int, numbers: random.Random
) -> Result:
    experiment = experiment_of(blocks)
    held = 0
    for n in range(number):
        effect = numbers.choice(_INJECTED)
        pairs = _stretch(some, experiment, effect, n, seed, numbers)
        verdict = judged(experiment, pairs, Claim(0.05, MARGIN))
        held += (verdict.ratio_low or 0) <= 1 + effect <= (verdict.ratio_high or 0)
    low, high = COVERED
    goal = f"{100 * low:g} to {100 * high:g} %"
    words = f"95 % interval holds the effect; {pattern}, {blocks} blocks"
    return Result(
        "calibration", words, share(held, number), held / number, goal, low <= held / number <= high
    )


def _equivalence(
    words: str, some: Sequence[Series], number: int, seed: int, numbers: random.Random
) -> Result:
    experiment = experiment_of(None)
    wrong = right = 0
    for n in range(number):
        # As much faster as slower.
        effect = numbers.choice((MARGIN, 1 / (1 + MARGIN) - 1))
        pairs = _stretch(some, experiment, effect, n, seed, numbers)
        wrong += judged(experiment, pairs).verdict == EQUIVALENT
        pairs = _stretch(some, experiment, 0, number + n, seed, numbers)
        right += judged(experiment, pairs).verdict == EQUIVALENT
    what = f'"equivalent" within 1 % where the truth is 1 %; {words}'
    return at_most(
        "calibration", what, wrong, number, 0.01, **{"said where the truth is 0": share(right, number)}
    )
