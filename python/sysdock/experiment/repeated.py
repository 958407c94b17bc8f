"""Two commands, run in turns: whether one takes longer, and how sure that is.

All runs of one command and then all of the other claim a difference in a third of the comparisons where there
is none: the machine changes meanwhile. Here each round runs both, in an order drawn for it, and rounds are
compared.

Sources: Wilcoxon's exact signed-rank test; Hodges and Lehmann (1963) for the estimate and its interval, on
logarithms of the ratio in each round.
"""

from __future__ import annotations

import math
import random
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sysdock.errors import UserError

# Of both sides together: what is called a difference by chance.
ALPHA = 0.01
# With fewer rounds no result could be told from chance.
LEAST_ROUNDS = 8
_MOST_SAID = 500


@dataclass(frozen=True)
class Verdict:
    """What the rounds tell.

    `ratio`: time of B over that of A; `low` and `high`: between which it lies, None: anywhere.
    """

    ratio: float
    low: float | None
    high: float | None
    p: float

    @property
    def is_different(self) -> bool:
        """Whether chance is ruled out, as far as `ALPHA` says."""
        return self.p <= ALPHA


@dataclass(frozen=True)
class Rounds:
    """Times of both commands [s], by round, and the seed that the order of each round comes from."""

    a: list[float]
    b: list[float]
    seed: int

    def verdict(self) -> Verdict:
        """Of at least one round."""
        return judge([math.log(b / a) for a, b in zip(self.a, self.b, strict=True)])


def run_in_turns(
    a: str, b: str, rounds: int, seed: int, told: Callable[[int], None] = lambda _: None
) -> Rounds:
    """Runs both, `rounds` times, after one run of each that does not count; `told` hears of each round.

    Ctrl-C ends it after the last whole round. A command that fails is a UserError: its time means nothing.
    """
    order = random.Random(seed)
    found = Rounds([], [], seed)
    for command in (a, b):
        _timed(command)
    try:
        for number in range(rounds):
            times = {}
            for name, words in order.sample((("a", a), ("b", b)), 2):
                times[name] = _timed(words)
            found.a.append(times["a"])
            found.b.append(times["b"])
            told(number + 1)
    except KeyboardInterrupt:
        if not found.a or len(found.a) != len(found.b):
            raise
    return found


def _timed(command: str) -> float:
    """How long it takes [s]."""
    begun = time.perf_counter()
    done = subprocess.run(
        ["sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    took = time.perf_counter() - begun
    if done.returncode:
        said = done.stderr[-_MOST_SAID:].decode(errors="replace").strip()
        hint = f"it said: {said}" if said else "run it alone, and see why"
        raise UserError(f"exited with status {done.returncode}, so its time was not used", hint, command)
    return took


def judge(differences: Sequence[float]) -> Verdict:
    """Whether logarithms of ratios lie on one side of zero, and where their middle lies."""
    walsh = sorted(
        (one + other) / 2 for index, one in enumerate(differences) for other in differences[index:]
    )
    count = len(differences)
    spread = _signed_ranks(count)
    total = 2**count
    positive = sum(average > 0 for average in walsh)
    zero = sum(average == 0 for average in walsh)
    # Ties count for the side that makes the difference smaller.
    extreme = min(positive + zero, len(walsh) - positive)
    p = min(1.0, 2 * sum(spread[: extreme + 1]) / total)
    cut = -1
    reached = 0
    for rank, number in enumerate(spread):
        reached += number
        if 2 * reached > ALPHA * total:
            break
        cut = rank
    low, high = (math.exp(walsh[cut]), math.exp(walsh[-1 - cut])) if cut >= 0 else (None, None)
    return Verdict(math.exp(statistics.median(walsh)), low, high, p)


def _signed_ranks(count: int) -> list[int]:
    """In how many of the 2**count sets of signs the ranks of the positive ones add up to 0, 1, 2, ..."""
    found = [1]
    for rank in range(1, count + 1):
        longer = [0] * (len(found) + rank)
        for total, number in enumerate(found):
            longer[total] += number
            longer[total + rank] += number
        found = longer
    return found
