"""Ratios of many jobs as a weighted histogram over log10(ratio), and where it falls into two classes.

Memory does not grow with the number of jobs. The split is Otsu's (1979): the one with the greatest variance
between the classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

BINS = 1000
# From 10^-6, below which a ratio is as good as none, to 10, reached only with more cores than stated.
LOWEST, HIGHEST = -6.0, 1.0
WIDTH = (HIGHEST - LOWEST) / BINS
# When two classes are taken for two. An even spread without classes has a separation of 0.75, a single normal
# peak 0.64; the valley is compared after smoothing over a tenth of a decade on either side.
LEAST_RECORDS = 1000
LEAST_SEPARATION = 0.8
LEAST_SHARE = 0.05
DEEPEST_VALLEY = 0.5
_SMOOTH = round(0.1 / WIDTH)
_EQUAL = 1 - 1e-9


@dataclass(frozen=True)
class Split:
    """Two classes: `threshold` between them, their shares of the weight and their typical ratios.

    `separation` is the variance between the classes over the whole variance (0 to 1), `valley` the weight at
    the threshold over that at the lower of the two peaks.
    """

    threshold: float
    separation: float
    valley: float
    shares: tuple[float, float]
    typical: tuple[float, float]


class Histogram:
    """Weights by log10(ratio), in bins of equal width."""

    def __init__(self) -> None:
        self.records = 0
        self.weights = [0.0] * BINS

    def add(self, ratio: float, weight: float) -> None:
        """One job; the weight is its real time times its cores."""
        self.records += 1
        place = int((math.log10(ratio) - LOWEST) / WIDTH) if ratio > 1e-6 else 0
        self.weights[min(place, BINS - 1)] += weight

    @property
    def weight(self) -> float:
        """All of it."""
        return math.fsum(self.weights)

    def quantile(self, share: float) -> float | None:
        """The ratio below which that share of the weight lies; None without any."""
        target, so_far = share * self.weight, 0.0
        for place, weight in enumerate(self.weights):
            if weight and so_far + weight >= target:
                return 10 ** (LOWEST + WIDTH * (place + (target - so_far) / weight))
            so_far += weight
        return None

    def decades(self) -> list[tuple[float, float, float]]:
        """Edges and share of the weight, in steps of a fifth of a decade; empty ends are left out."""
        step = round(0.2 / WIDTH)
        whole = self.weight or 1.0
        rows = []
        for place in range(0, BINS, step):
            share = math.fsum(self.weights[place : place + step]) / whole
            rows.append((_edge(place), _edge(min(place + step, BINS)), share))
        filled = [number for number, row in enumerate(rows) if row[2]]
        return rows[filled[0] : filled[-1] + 1] if filled else []

    def split(self) -> Split | None:
        """Otsu's split; None where all weight, or as good as all, lies in one bin."""
        whole = self.weight
        centres = [LOWEST + WIDTH * (place + 0.5) for place in range(BINS)]
        moments = [weight * centre for weight, centre in zip(self.weights, centres, strict=True)]
        mean = math.fsum(moments) / whole if whole else 0.0
        variance = math.fsum(w * (c - mean) ** 2 for w, c in zip(self.weights, centres, strict=True))
        if not variance > 0:
            return None
        between = []
        low = low_moment = 0.0
        for weight, moment in zip(self.weights[:-1], moments[:-1], strict=True):
            low += weight
            low_moment += moment
            high = whole - low
            # The mean of the upper class, computed from what is left, loses its digits where little is left.
            apart = (
                low_moment / low - (mean * whole - low_moment) / high
                if low > 0 and high > whole * 1e-9
                else 0
            )
            between.append(low * high * apart * apart / whole if apart else 0.0)
        best = max(between)
        if not best > 0:
            return None
        # All edges between two classes with nothing in between are equally good: take the middle.
        equal = [place for place, value in enumerate(between) if value >= best * _EQUAL]
        cut = (equal[0] + equal[-1]) // 2 + 1
        low = math.fsum(self.weights[:cut])
        return Split(
            threshold=_edge(cut),
            separation=best / variance,
            valley=self._valley(cut),
            shares=(low / whole, 1 - low / whole),
            typical=(
                10 ** (math.fsum(moments[:cut]) / low),
                10 ** (math.fsum(moments[cut:]) / (whole - low)),
            ),
        )

    def _valley(self, cut: int) -> float:
        # Not by differences of running sums, which a great weight takes the digits of.
        smooth = [
            math.fsum(self.weights[max(place - _SMOOTH, 0) : place + _SMOOTH + 1]) for place in range(BINS)
        ]
        lower, upper = max(smooth[:cut]), max(smooth[cut:])
        first, last = smooth[:cut].index(lower), cut + smooth[cut:].index(upper)
        return min(smooth[first : last + 1]) / min(lower, upper)


def _edge(place: int) -> float:
    return 10 ** (LOWEST + WIDTH * place)
