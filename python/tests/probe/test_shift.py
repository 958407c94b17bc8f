"""The statistics behind a status, on series whose truth is known."""

from __future__ import annotations

import math
import random

import pytest
from sysdock.probe.shift import adjusted, change_points, lasts, shifted

FALL = math.log(0.7)


def noise(
    rng: random.Random, count: int, size: float, alike: float = 0.0, stalls: float = 0.0
) -> list[float]:
    """Values around 0 that resemble their neighbours; some are stalls."""
    found, last = [], 0.0
    for _ in range(count):
        last = alike * last + math.sqrt(1 - alike * alike) * rng.gauss(0, size)
        found.append(last - (rng.expovariate(1.0) if rng.random() < stalls else 0.0))
    return found


@pytest.mark.parametrize("count", [15, 40, 200])
@pytest.mark.parametrize(("alike", "stalls"), [(0.0, 0.0), (0.5, 0.05)])
def test_without_a_change_chance_finds_one_as_often_as_it_says(
    count: int, alike: float, stalls: float
) -> None:
    rng, runs = random.Random(count), 120
    pairs = [shifted(noise(rng, count, 0.1, alike, stalls)) for _ in range(runs)]
    for limit in (0.05, 0.01):
        # Twice the limit, and three standard deviations of the number of runs.
        allowed = 2 * limit * runs + 3 * math.sqrt(2 * limit * runs)
        assert sum(pair is not None and pair[0].p < limit for pair in pairs) <= allowed
        assert sum(pair is not None and pair[1].p < limit for pair in pairs) <= allowed


@pytest.mark.parametrize(
    ("count", "slow", "size"), [(60, 12, 0.1), (200, 12, 0.15), (600, 24, 0.15), (300, 100, 0.15)]
)
def test_a_fall_of_30_percent_is_found_where_it_began(count: int, slow: int, size: float) -> None:
    rng, found, starts, held = random.Random(7), 0, 0, 0
    for _ in range(40):
        values = noise(rng, count, size, 0.1, 0.03)
        values = [value + (FALL if at >= count - slow else 0.0) for at, value in enumerate(values)]
        pair = shifted(values)
        assert pair
        fall = pair[0]
        found += fall.p < 0.01 and lasts(values, fall)
        starts += abs(fall.length - slow) <= max(3, slow // 3)
        held += fall.low <= FALL <= fall.high
    assert found >= 36
    assert starts >= 32
    assert held >= 34


def test_one_stall_is_no_fall() -> None:
    values = [*noise(random.Random(3), 100, 0.05), -4.0]
    pair = shifted(values)
    assert pair
    assert pair[0].p > 0.01


def test_a_fall_that_is_over_does_not_last() -> None:
    rng = random.Random(5)
    values = [*noise(rng, 200, 0.05), *(FALL + each for each in noise(rng, 60, 0.05)), *noise(rng, 6, 0.05)]
    pair = shifted(values)
    assert pair
    assert pair[0].p < 0.001
    assert not lasts(values, pair[0])


def test_too_few_values_tell_nothing() -> None:
    assert shifted([0.0] * 14) is None
    assert shifted([0.0] * 15) is not None


def test_values_that_never_differ_make_no_trouble() -> None:
    pair = shifted([1.0] * 50)
    assert pair
    assert pair[0].p > 0.1
    pair = shifted([1.0] * 44 + [0.5] * 6)
    assert pair
    assert pair[0].p < 0.001


def test_chances_are_adjusted_as_holm_says() -> None:
    assert adjusted([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert adjusted([]) == []


def test_change_points_are_found_and_no_others() -> None:
    rng, levels = random.Random(11), [0.0, FALL, 0.1]
    values = [level + each for level in levels for each in noise(rng, 120, 0.12, 0.3, 0.03)]
    found = change_points(values)
    assert [abs(point.at - at) <= 6 for point, at in zip(found, (120, 240), strict=True)] == [True, True]
    assert found[0].change == pytest.approx(FALL, abs=0.1)
    quiet = [change_points(noise(rng, 400, 0.12, 0.3, 0.03)) for _ in range(40)]
    assert sum(map(bool, quiet)) <= 2
