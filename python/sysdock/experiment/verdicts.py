"""Results of the blocks of an experiment: one verdict for each scenario, workload and metric.

- *changed*: significant at alpha, and the interval reaches beyond the margin.
- *equivalent*: the whole interval lies within the margin.
- *inconclusive*: neither; the smallest effect that so many blocks could show is given with it.
- *invalid*: something else moved the numbers, and `reason` says what.

"No significant difference" is never a verdict: it says as much about the number of blocks as about the
scenario.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from sysdock.experiment import signed_rank
from sysdock.experiment.power import smallest_visible
from sysdock.sentences import Fact, fact

K = TypeVar("K")
CHANGED, EQUIVALENT, INCONCLUSIVE, INVALID = "changed", "equivalent", "inconclusive", "invalid"
# Iglewicz and Hoaglin (1993): beyond this many robust deviations a value is called an outlier.
_OUTLIER = 3.5
_MAD_OF_NORMAL = 0.6745
# Part of false discoveries among secondary metrics (Benjamini and Hochberg, 1995).
_FALSE_DISCOVERIES = 0.05


@dataclass(frozen=True)
class Samples:
    """A metric of the baseline and of a scenario in the same blocks, block by block."""

    case_id: int
    workload: str
    scenario: str
    metric: str
    is_primary: bool
    is_control: bool
    baseline: tuple[float, ...]
    changed: tuple[float, ...]

    @property
    def is_ratio(self) -> bool:
        """Whether values can be compared as ratios: all of them are above zero."""
        return min((*self.baseline, *self.changed), default=0.0) > 0

    def differences(self) -> list[float]:
        """By block: logarithms of ratios, or plain differences where some value is zero."""
        pairs = zip(self.baseline, self.changed, strict=True)
        if self.is_ratio:
            return [math.log(after / before) for before, after in pairs]
        return [after - before for before, after in pairs]


@dataclass(frozen=True)
class Verdict:
    """A row of `experiment_verdicts`.

    `ratio` and its interval: scenario over baseline; None where some value is zero. `difference`: of the
    medians, in the metric's unit. `level`: what its p has to reach to be significant, with the others of its
    family as they are.
    """

    samples: Samples
    verdict: str
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    difference: float
    p: float
    p_adjusted: float
    blocks: int
    level: float
    reason: Fact | None = None

    @cached_property
    def smallest_visible(self) -> float | None:
        """A ratio minus one, None if it is unknown. It takes longer than everything else: some ms."""
        visible = smallest_visible(self.samples.differences(), self.blocks, self.level)
        return _visible_as_ratio(self.samples, visible)


@dataclass(frozen=True)
class Claim:
    """The claim that was fixed before the first run: the level, and the margin: a smaller change does not
    matter.
    """

    alpha: float
    margin: float


def judge(samples: Sequence[Samples], claim: Claim) -> list[Verdict]:
    """One verdict for each of the samples, in their order.

    Primary metrics are one family (Holm, 1979), secondary ones another (Benjamini and Hochberg); the control,
    which is the baseline under another name, belongs to neither.
    """
    p_values = [signed_rank.p_value(each.differences()) for each in samples]
    adjusted = dict(enumerate(p_values))
    primary = [n for n, each in enumerate(samples) if each.is_primary and not each.is_control]
    # A metric that no run gave is no comparison.
    others = [n for n, each in enumerate(samples) if not each.is_primary and not each.is_control]
    secondary = [n for n in others if samples[n].changed]
    of_primary, of_secondary = {n: p_values[n] for n in primary}, {n: p_values[n] for n in secondary}
    adjusted.update(_holm(of_primary))
    adjusted.update(benjamini_hochberg(of_secondary))
    verdicts = []
    for number, each in enumerate(samples):
        level, own_level = claim.alpha, claim.alpha
        if number in of_primary:
            own_level = _level_by_holm(_without(of_primary, number), claim.alpha)
        elif number in of_secondary:
            level = _FALSE_DISCOVERIES
            own_level = _level_by_discoveries(_without(of_secondary, number), level)
        verdicts.append(_judged(each, claim, p_values[number], adjusted[number], level, own_level))
    return verdicts


def _without(p_values: Mapping[int, float], number: int) -> list[float]:
    return sorted(p for n, p in p_values.items() if n != number)


def _level_by_holm(others: Sequence[float], alpha: float) -> float:
    """The level that one more p must reach in Holm's procedure, given the sorted p values of the others."""
    size = len(others) + 1
    rejected = next((place for place, p in enumerate(others) if p > alpha / (size - place)), len(others))
    return alpha / (size - rejected)


def _level_by_discoveries(others: Sequence[float], part: float) -> float:
    """The level in the procedure of Benjamini and Hochberg."""
    size = len(others) + 1
    named = [place for place, p in enumerate(others, 1) if p <= part * (place + 1) / size]
    return part * (max(named, default=0) + 1) / size


def _judged(
    samples: Samples, claim: Claim, p: float, adjusted: float, level: float, own_level: float
) -> Verdict:
    differences = samples.differences()
    blocks = len(differences)
    if not blocks:
        why = fact("experiment/no_run_has_metric")
        return Verdict(samples, INVALID, None, None, None, 0.0, 1.0, 1.0, 0, own_level, why)
    margin = _margin(samples, claim.margin)
    bounds = signed_rank.interval(differences, claim.alpha)
    word, reason = _word(adjusted, level, bounds, margin, blocks, claim.alpha)
    if word == CHANGED and not _holds_without_outliers(differences, claim.alpha):
        word, reason = INCONCLUSIVE, fact("experiment/rests_on_outliers")
    low, high = bounds if bounds else (None, None)
    return Verdict(
        samples,
        word,
        _as_ratio(samples, signed_rank.estimate(differences)),
        _as_ratio(samples, low),
        _as_ratio(samples, high),
        statistics.median(samples.changed) - statistics.median(samples.baseline),
        p,
        adjusted,
        blocks,
        own_level,
        reason,
    )


def _margin(samples: Samples, margin: float) -> float:
    """The margin in the unit of the differences; `margin` is a part of the baseline."""
    return math.log1p(margin) if samples.is_ratio else margin * statistics.median(samples.baseline)


def _word(
    adjusted: float,
    level: float,
    bounds: tuple[float, float] | None,
    margin: float,
    blocks: int,
    alpha: float,
) -> tuple[str, Fact | None]:
    if bounds is None:
        least = next(n for n in range(1, 64) if signed_rank.smallest_p(n) <= alpha)
        return INCONCLUSIVE, fact("experiment/too_few_blocks", blocks=blocks, least=least)
    low, high = bounds
    if -margin <= low and high <= margin:
        return EQUIVALENT, None
    return (CHANGED, None) if adjusted <= level else (INCONCLUSIVE, None)


def _holds_without_outliers(differences: Sequence[float], alpha: float) -> bool:
    """Whether it is significant without blocks that are far from the others.

    Fewer blocks have larger p: of what is left, no more is asked than it can show.
    """
    kept = [d for d, is_outlier in zip(differences, outliers(differences), strict=True) if not is_outlier]
    if len(kept) == len(differences):
        return True
    return signed_rank.p_value(kept) <= max(alpha, signed_rank.smallest_p(len(kept)))


def outliers(values: Sequence[float]) -> list[bool]:
    """Which values are far from the others, by their modified z."""
    middle = statistics.median(values) if values else 0.0
    deviation = statistics.median(abs(v - middle) for v in values) if values else 0.0
    return [deviation > 0 and _MAD_OF_NORMAL * abs(v - middle) / deviation > _OUTLIER for v in values]


def _as_ratio(samples: Samples, difference: float | None) -> float | None:
    return math.exp(difference) if difference is not None and samples.is_ratio else None


def _visible_as_ratio(samples: Samples, visible: float | None) -> float | None:
    if visible is None:
        return None
    if samples.is_ratio:
        return math.expm1(visible)
    usual = statistics.median(samples.baseline)
    return visible / usual if usual else None


def benjamini_hochberg(p_values: Mapping[K, float]) -> dict[K, float]:
    """Adjusted p-values: named up to q, at most the part q of what is named is false (1995)."""
    adjusted = {}
    smallest = 1.0
    ordered = sorted(p_values.items(), key=lambda item: item[1])
    for place in reversed(range(len(ordered))):
        key, p = ordered[place]
        smallest = min(smallest, p * len(ordered) / (place + 1))
        adjusted[key] = smallest
    return adjusted


def _holm(p_values: dict[int, float]) -> dict[int, float]:
    adjusted = {}
    largest = 0.0
    for place, (key, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, (len(p_values) - place) * p))
        adjusted[key] = largest
    return adjusted


def is_decided(verdicts: Sequence[Verdict]) -> bool:
    """Whether more blocks would change nothing: each scenario is changed, or equivalent."""
    return all(each.verdict in (CHANGED, EQUIVALENT) for each in verdicts)
