"""Whether the newest values of a series are lower than those before them: since when, by how much, how sure.

Values are logarithms of rates, oldest first. Each becomes a score: its distance from the median of the values
before the window that is tested, by their spread (median absolute deviation), and at most `CLIP` either
way (Huber 1964), so that a single stall decides nothing. The sum of the scores in a window that ends with the
newest value is compared with what chance gives. Neighbouring probes
resemble each other (what slows one slows the next), so the variance of such a sum is taken from the series
itself: from sums of as many neighbours before the window, and from the correlation of neighbours. Windows of
many lengths are tested, and the price of that is paid (`_independent`), as it is for several items (Holm
1979, `adjusted`).

`change_points` finds the moments in a whole series at which its level changed: binary segmentation by the
cumulative sum of scores (Page 1954), whose largest distance from its chord has the distribution of the
largest distance of a Brownian bridge from zero.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import median

CLIP = 3.0
# Fewer values tell nothing.
LEAST_BEFORE = 12
LEAST_WITHIN = 3
# A logarithm: what differs by less is the same, however still the series was.
_LEAST_SPREAD = 0.005
_MAD_TO_SIGMA = 1.4826
_GROWTH = 1.25
_WORTH_A_LOOK = 0.05
_LOOKS = 24
_BLOCKS = 8
_MOST_DF = 200.0
# The median of values that are normally distributed varies by this factor more than their mean.
_OF_MEDIAN = 1.2533
# Values at the end that must still show the change.
_NEWEST = 5


@dataclass(frozen=True)
class Shift:
    """The window that differs most from what was before it.

    `length`: values in the window. `change`, `low`, `high`: difference of the medians and its 95 % interval
    (logarithms). `deviate`: as many standard deviations as it lies from none; `p`: of a fall that large by
    chance in any of the windows.
    """

    length: int
    change: float
    low: float
    high: float
    deviate: float
    p: float


def shifted(values: Sequence[float]) -> tuple[Shift, Shift] | None:
    """The clearest fall and the clearest rise; `p` is of either by itself. None: there are too few values."""
    lengths = _lengths(len(values))
    if not lengths:
        return None
    deviates = {length: _deviate(values, length) for length in lengths}
    return _clearest(values, lengths, deviates, 1.0), _clearest(values, lengths, deviates, -1.0)


def _clearest(
    values: Sequence[float], lengths: Sequence[int], deviates: dict[int, float], sign: float
) -> Shift:
    """The window that lies lowest; with the sign -1 the highest."""
    length = min(lengths, key=lambda each: sign * deviates[each])
    p = min(1.0, _tail(-sign * deviates[length]) * _independent(lengths))
    if p < _WORTH_A_LOOK:
        # Its beginning is found to the value; the correction for the lengths covers those in between.
        place = lengths.index(length)
        near = range(lengths[max(place - 1, 0)], lengths[min(place + 1, len(lengths) - 1)] + 1)
        tried = {each: sign * _deviate(values, each) for each in near[:: max(1, len(near) // _LOOKS)]}
        length = min([length, *tried], key=lambda each: tried.get(each, sign * deviates.get(each, 0.0)))
    change, error = _change(values, length)
    deviate = deviates.get(length) or _deviate(values, length)
    return Shift(length, change, change - error, change + error, deviate, p)


def _lengths(count: int) -> list[int]:
    """Lengths of windows, each a quarter longer; at least as many values stay before it."""
    most = min(count // 2, count - LEAST_BEFORE)
    found, length = [], float(LEAST_WITHIN)
    while length <= most:
        found.append(int(length))
        length = max(length + 1, length * _GROWTH)
    return found


def _independent(lengths: Sequence[int]) -> float:
    """Number of independent windows that are equivalent: two more for each doubling of the length."""
    return 1 + 2 * math.log2(lengths[-1] / lengths[0])


def scores(values: Sequence[float], before: Sequence[float]) -> list[float]:
    """Distance of `values` from the median of `before`, in its spread; at most `CLIP`."""
    middle = median(before)
    spread = spread_of(before, middle)
    return [max(-CLIP, min(CLIP, (value - middle) / spread)) for value in values]


def spread_of(values: Sequence[float], middle: float) -> float:
    """A standard deviation that a quarter of wild values does not change."""
    return max(_MAD_TO_SIGMA * median(abs(value - middle) for value in values), _LEAST_SPREAD)


def _deviate(values: Sequence[float], length: int) -> float:
    """The difference of the last `length` values from those before, as a standard normal deviate."""
    count = len(values) - length
    scored = scores(values, values[:count])
    before, within = scored[:count], scored[count:]
    mean = sum(before) / count
    variance = sum((each - mean) ** 2 for each in before) / (count - 1)
    inflation = inflation_of(before, length)
    error = math.sqrt(max(variance, 1e-9) * inflation * (1 / length + 1 / count))
    t = (sum(within) / length - mean) / error
    return _normal(t, min(max(count / inflation, 2.0), _MOST_DF))


def inflation_of(before: Sequence[float], length: int) -> float:
    """The variance of sums of `length` neighbours, relative to sums of independent values."""
    count = len(before)
    mean = sum(before) / count
    centred = [each - mean for each in before]
    square = sum(each * each for each in centred)
    if square == 0:
        return 1.0
    # With few values the correlation comes out too small by about this much (Kendall 1954).
    lag = sum(a * b for a, b in pairwise(centred)) / square
    lag = min(max(lag + (1 + 3 * lag) / count, 0.0), 0.9)
    by_lag = (1 + lag) / (1 - lag)
    blocks = count // length
    if blocks < _BLOCKS:
        return by_lag
    sums = list(accumulate(centred, initial=0.0))
    means = [(sums[at + length] - sums[at]) / length for at in range(0, blocks * length, length)]
    by_blocks = length * sum(each * each for each in means) / blocks / (square / count)
    return max(by_lag, by_blocks)


def _change(values: Sequence[float], length: int) -> tuple[float, float]:
    """Difference of the medians, and half of its 95 % interval."""
    count = len(values) - length
    before, within = values[:count], values[count:]
    middle, level = median(before), median(within)
    spread = max(spread_of(before, middle), spread_of(within, level))
    inflation = inflation_of(scores(before, before), length)
    error = spread * _OF_MEDIAN * math.sqrt(inflation * (1 / length + 1 / count))
    # Two standard deviations and more where there are few values.
    return level - middle, error * (1.96 + 2.4 / max(min(length, count) - 1, 1))


def lasts(values: Sequence[float], shift: Shift) -> bool:
    """Whether the newest values still show it: a fall that is over is no news."""
    count = len(values) - shift.length
    newest = median(values[-min(_NEWEST, shift.length) :]) - median(values[:count])
    return newest / shift.change > 0.5 if shift.change else False


def adjusted(ps: Sequence[float]) -> list[float]:
    """Probabilities corrected for the number of tests (Holm 1979)."""
    order = sorted(range(len(ps)), key=lambda at: ps[at])
    found, most = [1.0] * len(ps), 0.0
    for rank, at in enumerate(order):
        most = max(most, min(1.0, ps[at] * (len(ps) - rank)))
        found[at] = most
    return found


@dataclass(frozen=True)
class ChangePoint:
    """`at`: the first value of the new level. `change`: of the medians on both sides (a logarithm)."""

    at: int
    change: float
    p: float


def change_points(
    values: Sequence[float], p_most: float = 0.001, least_change: float = 0.05
) -> list[ChangePoint]:
    """Times at which the level of the series changed permanently, oldest first."""
    places = sorted(_split(values, 0, len(values), p_most))
    # A split that was found early may be none next to later ones: each is judged between its neighbours.
    while True:
        found, edges = [], [0, *(at for at, _ in places), len(values)]
        for number, (at, p) in enumerate(places):
            first, last = edges[number], edges[number + 2]
            change = median(values[at:last]) - median(values[first:at])
            found.append(ChangePoint(at, change, p))
        weak = [point for point in found if abs(point.change) < least_change]
        if not weak:
            return found
        weakest = min(weak, key=lambda point: abs(point.change))
        places = [(at, p) for at, p in places if at != weakest.at]


def _split(values: Sequence[float], first: int, last: int, p_most: float) -> list[tuple[int, float]]:
    part = values[first:last]
    if len(part) < 2 * LEAST_BEFORE:
        return []
    at, p = _cusum(part)
    if p > p_most:
        return []
    here = first + at
    return [*_split(values, first, here, p_most), (here, p), *_split(values, here, last, p_most)]


def _cusum(part: Sequence[float]) -> tuple[int, float]:
    """The most likely place of a change, and the chance of one that clear where there is none."""
    count = len(part)
    scored = scores(part, part)
    mean = sum(scored) / count
    sums = list(accumulate((each - mean for each in scored), initial=0.0))
    edge = LEAST_WITHIN
    at = max(range(edge, count - edge + 1), key=lambda place: abs(sums[place]))
    # Spread and correlation as they are on each side, as the change itself would count as both.
    inner = [each - sum(side) / len(side) for side in (scored[:at], scored[at:]) for each in side]
    variance = (
        sum(each * each for each in inner) / count * inflation_of(inner, max(2, round(math.sqrt(count))))
    )
    x = abs(sums[at]) / math.sqrt(max(variance, 1e-9) * count)
    return at, min(1.0, 2 * math.exp(-2 * x * x))


def running_medians(values: Sequence[float], width: int) -> list[float]:
    """The median of the last `width` values at each place: for graphs."""
    held: list[float] = []
    found = []
    for at, value in enumerate(values):
        insort(held, value)
        if at >= width:
            del held[bisect_left(held, values[at - width])]
        found.append(held[len(held) // 2])
    return found


def _normal(t: float, df: float) -> float:
    """The normal deviate that is as rare as `t` of Student's distribution (Wallace 1959)."""
    size = (8 * df + 1) / (8 * df + 3) * math.sqrt(df * math.log1p(t * t / df))
    return math.copysign(size, t)


def _tail(deviate: float) -> float:
    """The chance of a standard normal deviate above it."""
    return 0.5 * math.erfc(deviate / math.sqrt(2))
