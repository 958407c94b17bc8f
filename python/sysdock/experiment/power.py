"""How small an effect so many blocks can show, and how many blocks an effect needs.

The smallest visible effect is the one that the signed-rank test finds in nine of ten experiments. It is in
proportion to the spread of the differences between blocks; the factors were computed by simulation with
normal noise (`tools/bench-experiment power` computes them again). Noise with rare outliers needs fewer blocks
than this says, since ranks ignore how far out they lie.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections.abc import Sequence

from sysdock.experiment.signed_rank import smallest_p

POWER = 0.9
# (blocks, smallest visible shift in standard deviations of a difference, times the root of the blocks)
_FACTORS = {
    0.01: (
        (8, 6.32), (9, 5.50), (10, 5.06), (11, 4.87), (12, 4.70), (14, 4.63), (16, 4.55), (20, 4.33),
        (25, 4.25), (30, 4.18), (40, 4.11), (60, 4.09), (100, 4.02),
    ),
    0.004: (
        (9, 6.82), (10, 6.00), (11, 5.99), (12, 5.55), (14, 5.30), (16, 5.05), (20, 4.79), (25, 4.68),
        (30, 4.61), (40, 4.48), (60, 4.44), (100, 4.34),
    ),
}  # fmt: skip
_NORMAL = statistics.NormalDist()
# The median of absolute deviations, of a normal distribution, as a share of its standard deviation.
_MAD_OF_NORMAL = 0.6745


def spread_of(differences: Sequence[float]) -> float:
    """Standard deviation of the differences, where an outlier counts no more than it does for ranks.

    The larger of what deviations from the median say and half of the common one: with few blocks the first
    alone is small by chance now and then.
    """
    if len(differences) < 2:
        return 0.0
    middle = statistics.median(differences)
    robust = statistics.median(abs(d - middle) for d in differences) / _MAD_OF_NORMAL
    return min(statistics.stdev(differences), max(robust, statistics.stdev(differences) / 2))


def smallest_visible(spread: float, blocks: int, alpha: float) -> float | None:
    """The shift that is found in nine of ten experiments; in the unit of `spread`.

    None: with so few blocks no difference can be significant at `alpha`.
    """
    if smallest_p(blocks) > alpha:
        return None
    return spread * _factor(blocks, alpha) / math.sqrt(blocks)


def blocks_for(effect: float, spread: float, alpha: float, most: int) -> int | None:
    """The fewest blocks in which `effect` is visible; None: more than `most`."""
    for blocks in range(2, most + 1):
        visible = smallest_visible(spread, blocks, alpha)
        if visible is not None and visible <= effect:
            return blocks
    return None


def _factor(blocks: int, alpha: float) -> float:
    known = min(_FACTORS, key=lambda level: abs(math.log(level / alpha)))
    table = _FACTORS[known]
    place = bisect_left(table, (blocks, 0.0))
    if place == 0:
        factor = table[0][1]
    elif place == len(table):
        factor = table[-1][1]
    else:
        (left, low), (right, high) = table[place - 1], table[place]
        factor = low + (high - low) * (blocks - left) / (right - left)
    return factor * _quantiles(alpha) / _quantiles(known)


def _quantiles(alpha: float) -> float:
    return _NORMAL.inv_cdf(1 - alpha / 2) + _NORMAL.inv_cdf(POWER)
