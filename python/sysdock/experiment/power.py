"""The smallest effect that a number of blocks can show: what the signed-rank test finds in nine of ten
experiments.

It is drawn from the differences themselves, again and again with either sign, as an experiment without an
effect would have them. So it knows what ranks do with noise that is not normal: with few blocks, a single
run that took much longer hides every effect that is smaller than itself. `tools/bench experiment` compares
it with effects that were injected.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from sysdock.experiment import signed_rank

POWER = 0.9
# With more blocks a draw says more, and takes longer.
_DRAWS, _LEAST_DRAWS, _VALUES = 64, 16, 2560


def smallest_visible(differences: Sequence[float], blocks: int, alpha: float) -> float | None:
    """The shift that is found in nine of ten experiments with this noise; in the unit of the differences.

    None: with so few blocks nothing can be significant at `alpha`, or there are less than two differences.
    """
    count = len(differences)
    if count < 2 or signed_rank.smallest_p(blocks) > alpha:
        return None
    middle = signed_rank.estimate(differences)
    # Distances from their own middle are smaller than those from the true one.
    larger = math.sqrt(count / (count - 1))
    noise = [larger * (difference - middle) for difference in differences]
    noise += [-value for value in noise]
    # The same numbers give the same answer.
    numbers = random.Random(0)
    needed: list[float] = []
    for _ in range(max(_LEAST_DRAWS, min(_DRAWS, _VALUES // blocks))):
        # A shift is significant once it moves the end of the interval over zero.
        if bounds := signed_rank.interval(numbers.choices(noise, k=blocks), alpha):
            needed += [-bounds[0], bounds[1]]
    return sorted(needed)[math.ceil(POWER * len(needed)) - 1]
