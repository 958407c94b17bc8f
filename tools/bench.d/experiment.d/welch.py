"""Welch's t test, which most tools use: what the engine's test is compared with."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

_TERMS = 300
_SMALL = 1e-300


def p_value(one: Sequence[float], other: Sequence[float]) -> float:
    """Two-sided, that two sets of numbers have the same mean; Welch (1947). Each has two numbers at least."""
    parts = [statistics.variance(some) / len(some) for some in (one, other)]
    if not sum(parts):
        return 1.0
    t = (statistics.fmean(one) - statistics.fmean(other)) / math.sqrt(sum(parts))
    squares = sum(part**2 / (len(some) - 1) for part, some in zip(parts, (one, other), strict=True))
    freedom = sum(parts) ** 2 / squares
    return _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function, by its continued fraction (Abramowitz and Stegun 26.5.8)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _TERMS):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _not_zero(1 + step * d)
            c = _not_zero(1 + step / c)
            value *= c * d
        if abs(c * d - 1) < 1e-12:
            break
    return front * value / a


def _not_zero(value: float) -> float:
    return value if abs(value) > _SMALL else _SMALL
