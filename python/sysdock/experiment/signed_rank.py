"""Wilcoxon's signed-rank test, exact, with the estimate and the interval that belong to it.

Each difference is that of one block of an experiment. If two scenarios are alike, each difference has either
sign with the same probability, because the order within a block was drawn: that is all the test needs. It
asks for no distribution, and holds for any noise of the machine.

Sources: Wilcoxon (1945); Hodges and Lehmann (1963) for the estimate and its interval; Pratt (1959) for
differences of zero, which take a rank and no side.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import lru_cache


def p_value(differences: Sequence[float]) -> float:
    """Two-sided: how probable sums of ranks at least as uneven are, if either sign is as probable.

    Differences of one size share their rank, and the distribution is that of the ranks as they are: exact
    also with ties. 1.0 where all differences are zero, or there are none.
    """
    ranks = _doubled_ranks(differences)
    signed = [(rank, d > 0) for rank, d in zip(ranks, differences, strict=True) if d != 0]
    if not signed:
        return 1.0
    counts = _distribution(tuple(sorted(rank for rank, _ in signed)))
    positive = sum(rank for rank, is_positive in signed if is_positive)
    extreme = min(positive, len(counts) - 1 - positive)
    return min(1.0, 2 * sum(counts[: extreme + 1]) / 2.0 ** len(signed))


def smallest_p(count: int) -> float:
    """The smallest possible `p_value` with this many differences: all on one side."""
    return min(1.0, 2.0 / 2.0**count)


def estimate(differences: Sequence[float]) -> float:
    """The middle of the differences (Hodges-Lehmann): the median of the averages of all pairs."""
    return statistics.median(_walsh_averages(differences))


def interval(differences: Sequence[float], alpha: float) -> tuple[float, float] | None:
    """An interval for the median with a confidence of at least 1 - alpha. None: there are too few
    differences.
    """
    averages = _walsh_averages(differences)
    count = len(differences)
    counts = _distribution(tuple(range(2, 2 * count + 1, 2)))
    cut = -1
    reached = 0
    # Sums are even, as ranks are doubled here.
    for rank_sum in range(0, len(counts), 2):
        reached += counts[rank_sum]
        if 2 * reached > alpha * 2**count:
            break
        cut = rank_sum // 2
    return (averages[cut], averages[-1 - cut]) if cut >= 0 else None


def _walsh_averages(differences: Sequence[float]) -> list[float]:
    return sorted((one + other) / 2 for index, one in enumerate(differences) for other in differences[index:])


def _doubled_ranks(differences: Sequence[float]) -> list[int]:
    """Twice the rank of each by its size, so that a rank shared by two is a whole number."""
    order = sorted(range(len(differences)), key=lambda index: abs(differences[index]))
    ranks = [0] * len(order)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and abs(differences[order[end]]) == abs(differences[order[start]]):
            end += 1
        for index in order[start:end]:
            ranks[index] = start + 1 + end
        start = end
    return ranks


@lru_cache(maxsize=256)
def _distribution(ranks: tuple[int, ...]) -> list[int]:
    """The number of the 2**n sets of signs with a sum of positive ranks of 0, 1, 2, ..."""
    counts = [1]
    for rank in ranks:
        longer = counts + [0] * rank
        for rank_sum, number in enumerate(counts):
            longer[rank_sum + rank] += number
        counts = longer
    return counts
