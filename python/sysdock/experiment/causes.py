"""Why a scenario differs from the baseline: what its explain runs did more or less of, tested and ranked.

For each item of the profiles (a function, a call, a lock, a wait, a count), the differences of the blocks go
through the same exact test as the claim. Items are many, so the part of false discoveries among those that
are named is held down (Benjamini and Hochberg). Times add up along the critical path: what no named item
explains is the remainder.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sysdock.experiment import signed_rank
from sysdock.experiment.explaining import (
    CALL,
    CALLS,
    CPU_WAIT,
    FUNCTION,
    IN_CALL,
    LOCK,
    LOCK_WAITS,
    REQUESTS,
    STACK,
    TOTAL,
    TRANSFERRED,
    WAIT,
)
from sysdock.experiment.verdicts import benjamini_hochberg

REMAINDER = "remainder"
_COUNTS = (CALLS, REQUESTS, TRANSFERRED)
# Part of false discoveries among the causes of a scenario.
_FALSE_DISCOVERIES = 0.01
# An item below this part of the elapsed time cannot be a cause worth naming.
_LEAST_PART = 0.002
# An item that is this part of a wider one represents it: the lock before the call that waits for it.
_MOST_OF_IT = 2 / 3
# With other calls, functions may take longer because of them (caches, the cost of the recorder); waiting
# for a CPU depends on other programs. Both come after items that take more than this part of their time.
_MAY_FOLLOW = 0.5
Key = tuple[str, str]
# By block: the items of the baseline and of the scenario.
Pairs = Sequence[tuple[Mapping[Key, float], Mapping[Key, float]]]


@dataclass(frozen=True)
class Cause:
    """A row of `experiment_causes` without case and scenario."""

    rank: int
    kind: str
    name: str
    difference_per_unit: float
    unit: str
    share: float | None
    p: float
    p_adjusted: float
    blocks: int


def causes(pairs: Pairs) -> list[Cause]:
    """Significant differences, by rank, and the remainder. Empty: no block has explain runs of both."""
    if not pairs:
        return []
    differences = {key: _differences(pairs, key) for key in _candidates(pairs)}
    p_values = {key: signed_rank.p_value(values) for key, values in differences.items()}
    adjusted = benjamini_hochberg(p_values)
    named = [key for key, p in adjusted.items() if p <= _FALSE_DISCOVERIES]
    elapsed = _differences(pairs, (TOTAL, "elapsed"))
    p_elapsed = signed_rank.p_value(elapsed)
    whole = signed_rank.estimate(elapsed) if p_elapsed <= _FALSE_DISCOVERIES else None
    found = []
    for rank, key in enumerate(_ranked(named, pairs), 1):
        kind, name = key
        difference = signed_rank.estimate(differences[key])
        share = difference / whole if whole and kind not in _COUNTS else None
        found.append(
            Cause(rank, kind, name, difference, _unit(kind), share, p_values[key], adjusted[key], len(pairs))
        )
    left = _remainder(pairs, named, elapsed)
    p = signed_rank.p_value(left)
    middle = signed_rank.estimate(left)
    share = middle / whole if whole else None
    return [*found, Cause(len(found) + 1, REMAINDER, "all else", middle, "ns", share, p, p, len(pairs))]


def _differences(pairs: Pairs, key: Key) -> list[float]:
    return [after.get(key, 0.0) - before.get(key, 0.0) for before, after in pairs]


def _candidates(pairs: Pairs) -> list[Key]:
    """Items that take part of the time and can be significant. Both arms count alike: tests stay exact."""
    keys = dict.fromkeys(key for pair in pairs for items in pair for key in items)
    elapsed = statistics.fmean(items[TOTAL, "elapsed"] for pair in pairs for items in pair)
    found = []
    for key in keys:
        kind, name = key
        mean = statistics.fmean(items.get(key, 0.0) for pair in pairs for items in pair)
        is_large = kind in _COUNTS or mean >= _LEAST_PART * elapsed
        # A function that is the application's own says the same twice.
        is_double = kind == STACK and (FUNCTION, name) in keys
        if (
            kind not in (TOTAL, LOCK_WAITS)
            and is_large
            and not is_double
            and _can_be_named(_differences(pairs, key))
        ):
            found.append(key)
    return found


def _can_be_named(differences: Sequence[float]) -> bool:
    """Whether its p could be small enough at all.

    What few runs did cannot, and would only make the level stricter for the others (Tarone, 1990; Gilbert,
    2005).
    """
    return signed_rank.smallest_p(sum(d != 0 for d in differences)) <= _FALSE_DISCOVERIES


def _ranked(named: Iterable[Key], pairs: Pairs) -> list[Key]:
    """The largest difference of time first; a narrower item before the wider one that it is most of.

    A count takes the place of the time that it costs: of calls, that in the call; of requests, that waited
    for a disk. Waiting for a CPU follows what the thread slept for. Where the number of some call differs,
    which is certain, functions come after what takes half as long.
    """
    named = list(named)
    follow = _MAY_FOLLOW if any(kind == CALLS for kind, _ in named) else 1.0

    def size(key: Key) -> float:
        return abs(signed_rank.estimate(_differences(pairs, key)))

    def place(key: Key) -> tuple[float, int]:
        kind, name = key
        if kind == CALLS:
            return size((CALL, name)), 2
        if kind in (REQUESTS, TRANSFERRED):
            waits = {each for pair in pairs for items in pair for each in items if each[0] == WAIT}
            return max((size(each) for each in waits if each[1].startswith("disk")), default=0.0), 3
        if kind in (LOCK, WAIT) and IN_CALL in name:
            call = size((CALL, name.rsplit(IN_CALL, 1)[1]))
            if name.startswith(CPU_WAIT):
                return min(call, size(key)), 4
            return (call, 0) if size(key) >= _MOST_OF_IT * call else (size(key), 1)
        if name.startswith(CPU_WAIT):
            return size(key) * _MAY_FOLLOW, 4
        if kind in (FUNCTION, STACK):
            return size(key) * follow * (_MOST_OF_IT if kind == STACK else 1), 1
        return size(key), 1

    return sorted(named, key=lambda key: (-place(key)[0], place(key)[1], key))


def _remainder(pairs: Pairs, named: Sequence[Key], elapsed: Sequence[float]) -> list[float]:
    """By block: the difference of elapsed time less those of the named items that do not overlap."""
    calls = {name for kind, name in named if kind == CALL}

    def is_apart(key: Key) -> bool:
        kind, name = key
        if kind in (LOCK, WAIT) and IN_CALL in name and not name.startswith(CPU_WAIT):
            return name.rsplit(IN_CALL, 1)[1] not in calls
        return kind not in (*_COUNTS, STACK)

    apart = [_differences(pairs, key) for key in named if is_apart(key)]
    return [whole - sum(values[n] for values in apart) for n, whole in enumerate(elapsed)]


def _unit(kind: str) -> str:
    return {CALLS: "calls", REQUESTS: "requests", TRANSFERRED: "B"}.get(kind, "ns")
