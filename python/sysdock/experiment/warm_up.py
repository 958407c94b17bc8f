"""Finds when a run becomes steady, from the numbers that it prints while it runs.

The end of the warm-up is the last change point of the series: where the values before and after differ more
than any split of the same values in another order would show. Change points are searched in halves of the
series again and again (binary segmentation); each is tested by the sum of ranks, exactly as likely under all
orders, so no distribution is asked for. A series whose last part is shorter than the rest is not steady.
"""

from __future__ import annotations

import random
import statistics
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

# A change point is one that so few orders of the same values would show.
_LEVEL = 0.01
_ORDERS = 499
# Fewer values say nothing about a warm-up.
LEAST = 10
# In longer series, neighbours are averaged.
_MOST = 500
# The steady part of a run is at least this part of it.
_LEAST_STEADY = 0.5


def steady_from(values: Sequence[float]) -> int | None:
    """Index of the first steady value; None: the series does not become steady, or is too short to say."""
    if len(values) < LEAST:
        return None
    width = -(-len(values) // _MOST)
    some = [statistics.fmean(values[n : n + width]) for n in range(0, len(values), width)]
    last = width * max(_change_points(some, 0, len(some)), default=0)
    return last if len(values) - last >= _LEAST_STEADY * len(values) else None


def _change_points(values: Sequence[float], start: int, end: int) -> list[int]:
    """Change points of `values[start:end]`, in no order."""
    if end - start < LEAST:
        return []
    ranks = _centred_ranks(values[start:end])
    at, size = _largest_split(ranks)
    drawn = random.Random(end - start)
    larger = 1
    for number in range(_ORDERS):
        larger += _largest_split(drawn.sample(ranks, len(ranks)))[1] >= size
        # Whatever the other orders show, it is too many already.
        if larger > _LEVEL * (_ORDERS + 1) and number:
            return []
    place = start + at
    return [*_change_points(values, start, place), place, *_change_points(values, place, end)]


def _centred_ranks(values: Sequence[float]) -> list[float]:
    """Ranks less their mean; equal values share theirs."""
    counts = Counter(values)
    first = dict(
        zip(sorted(counts), accumulate((counts[value] for value in sorted(counts)), initial=0), strict=False)
    )
    middle = (len(values) - 1) / 2
    return [first[value] + (counts[value] - 1) / 2 - middle for value in values]


def _largest_split(ranks: Sequence[float]) -> tuple[int, float]:
    """The split with the sum of ranks furthest from zero, relative to its spread, and its distance."""
    best, at, total, number = -1.0, 1, 0.0, len(ranks)
    for place in range(1, number):
        total += ranks[place - 1]
        size = total * total / (place * (number - place))
        if size > best:
            best, at = size, place
    return at, best
