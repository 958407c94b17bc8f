"""Is a file system slower now than it usually is, since when, by how much, and how sure is that?

Of each item the rates of the newest probes are compared with those before (`shift.py`), in two scales: probe
by probe for the newest week, and by medians of `_BLOCK` probes for all of the history, so that both a
fault of an hour ago and one that began a month ago are found. What follows the control item is not the
file system:

- Where the control item is slower, too, an item counts only for what goes beyond the control's own change, as
  far as that may be in it.
- Where it is not, the part of each value is taken out that went with the control before (a regression of the
  scores), as when a neighbour takes the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from sysdock.probe import shift
from sysdock.probe.history import CONTROL, Clock, History, ItemHistory, clock_of, read, without_pattern
from sysdock.probe.shift import LEAST_BEFORE, LEAST_WITHIN, Shift
from sysdock.sentences import Words, fact

if TYPE_CHECKING:
    from sysdock.analysis import Session

MARGIN = 0.10
SURE = 0.99
_FINE = 1008
_BLOCK = 36
_FEWEST_BLOCKS = 2 * LEAST_BEFORE
# This many consecutive probes without a number are a failure.
_FAILED = 3
_STALE = 3
_NEAR = 2
# A correlation times the root of the number of steps: beyond this it is no chance.
_R_TIMES_ROOT_N = 4.0


@dataclass(frozen=True)
class Judgement:
    """What is reported about an item, under the names of the columns of `probe status`.

    `status`: usual, slower, faster, unknown (too few probes, or the last one is old), failing. `change`,
    `low`, `high`: of the rate, as a ratio below or above 0 (-0.3: 30 % slower), with the 95 % interval.
    `confidence`: that it is slower (faster) at all, all items and windows that were tried counted in.
    """

    item: str
    status: str
    since_ns: int | None = None
    change: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    note: Words | None = None


@dataclass(frozen=True)
class Answer:
    """All items, and what it comes to: `status` of an item, or `machine`: the machine itself is slower."""

    status: str
    items: list[Judgement]
    probes: int
    last_ns: int | None
    reason: Words | None = None

    @property
    def exit_status(self) -> int:
        """0 usual, 1 slower, 2 not to be measured, 3 not known yet."""
        return {"usual": 0, "faster": 0, "slower": 1, "machine": 1, "failing": 2}.get(self.status, 3)


@dataclass(frozen=True)
class Settings:
    """Limits for `slower`: a change of at least `margin`, and at least this `sure`."""

    margin: float = MARGIN
    sure: float = SURE


def judge(session: Session, every_ns: int, now_ns: int, settings: Settings | None = None) -> Answer:
    """The judgement of a series at `now_ns`; probes are expected each `every_ns`."""
    return judge_history(read(session), every_ns, now_ns, settings or Settings())


@dataclass(frozen=True)
class _Tried:
    """An item, its series as it was compared, and the fall and the rise that were found."""

    item: ItemHistory
    fall: Shift | None
    rise: Shift | None
    # Change in the window of the fall, of the values as measured.
    raw_change: float = 0.0
    # Whether all of the control's change was taken out.
    is_adjusted: bool = False


def judge_history(history: History, every_ns: int, now_ns: int, settings: Settings) -> Answer:
    """The same judgement, for probes that were read already."""
    last = history.times_ns[-1] if history.ids else None
    if last is None:
        return Answer("unknown", [], 0, None, _TOO_FEW)
    if history.failure is not None:
        reason = fact("probe/newest_probe_failed", failure=history.failure)
        items = [Judgement(item.name, "failing") for item in history.items]
        return Answer("failing", items, len(history.ids), last, reason)
    if now_ns - last > _STALE * every_ns:
        items = [Judgement(item.name, "unknown") for item in history.items]
        return Answer("unknown", items, len(history.ids), last, _OLD)
    clock = clock_of(history.times_ns)
    control = history.control
    machine = _compare(control, None, history, clock, slower=False) if control else None
    slow_machine = machine is not None and _is_slower(machine, 1.0, settings)
    tried = [
        machine
        if item is control and machine is not None
        else _compare(item, control, history, clock, slower=slow_machine)
        for item in history.items
    ]
    items = _judgements(tried, history, settings)
    return _answer(items, history, last)


def _answer(items: list[Judgement], history: History, last_ns: int) -> Answer:
    never = {item.name for item in history.items if not item.values}
    statuses = {item.status for item in items if item.item != CONTROL and item.item not in never} or {
        "unknown"
    }
    control = next((item.status for item in items if item.item == CONTROL), "unknown")
    reason = None
    if "failing" in statuses:
        status = "failing"
    elif "slower" in statuses:
        status = "slower"
    elif control == "slower":
        status = "machine"
    elif statuses <= {"unknown"}:
        status, reason = "unknown", _TOO_FEW
    else:
        status = "faster" if "faster" in statuses else "usual"
    return Answer(status, items, len(history.ids), last_ns, reason)


def _compare(
    item: ItemHistory, control: ItemHistory | None, history: History, clock: Clock, *, slower: bool
) -> _Tried:
    """Looks for a fall and a rise. `slower`: the control item is, so that as much as may be is taken out."""
    places = [history.place[probe] for probe in item.probes]
    hours = Clock(
        *([each[place] for place in places] for each in (clock.hours, clock.week_hours, clock.days))
    )
    values, _ = without_pattern(item.values, hours)
    raw = values
    if control is not None:
        values = _without_control(item, values, control, slower=slower)
    fall, rise = _in_two_scales(values) or (None, None)
    newest = fall.length if fall else 0
    raw_change = median(raw[-newest:]) - median(raw[:-newest]) if newest else 0.0
    return _Tried(item, fall, rise, raw_change, slower)


def _without_control(
    item: ItemHistory, values: Sequence[float], control: ItemHistory, *, slower: bool
) -> list[float]:
    of_probe = dict(zip(control.probes, control.values, strict=True))
    if not of_probe:
        return list(values)
    middle = median(of_probe.values())
    beside = [of_probe.get(probe, middle) - middle for probe in item.probes]
    factor = _share(values, beside, most=slower)
    return [value - factor * each for value, each in zip(values, beside, strict=True)]


def _share(values: Sequence[float], beside: Sequence[float], *, most: bool) -> float:
    """The part of a change of the control item that is in the values, from 0 to 1: 0 if that may be chance.

    most: as much as there may be. What follows the control varies at least as much as that share of it.
    """
    values, beside = values[-_FINE:], beside[-_FINE:]
    count = len(values)
    if count < LEAST_BEFORE:
        return float(most)
    # Steps from probe to probe: a change of the level is none of the control's doing.
    mine, its = ([b - a for a, b in pairwise(each)] for each in (values, beside))
    scale = shift.spread_of(mine, median(mine)) / shift.spread_of(its, median(its))
    if most:
        return min(1.0, scale)
    y, x = shift.scores(mine, mine), shift.scores(its, its)
    xy, xx, yy = (sum(a * b for a, b in zip(*pair, strict=True)) for pair in ((x, y), (x, x), (y, y)))
    if xx == 0 or yy == 0 or xy / math.sqrt(xx * yy) * math.sqrt(count) < _R_TIMES_ROOT_N:
        return 0.0
    return min(1.0, xy / xx * scale)


def _in_two_scales(values: Sequence[float]) -> tuple[Shift, Shift] | None:
    """The clearest fall and rise, probe by probe and in blocks; twice as many windows are paid for."""
    fine = shift.shifted(values[-_FINE:])
    if fine is None or len(values) < _FEWEST_BLOCKS * _BLOCK:
        return fine
    first = len(values) % _BLOCK
    blocks = [median(values[at : at + _BLOCK]) for at in range(first, len(values), _BLOCK)]
    coarse = shift.shifted(blocks)
    if coarse is None:
        return fine
    fall, rise = (_clearer(*both) for both in zip(fine, coarse, strict=True))
    return fall, rise


def _clearer(fine: Shift, coarse: Shift) -> Shift:
    coarse = replace(coarse, length=coarse.length * _BLOCK)
    clearest = min((fine, coarse), key=lambda each: each.p)
    return replace(clearest, p=min(1.0, 2 * clearest.p))


def _is_slower(tried: _Tried, times: float, settings: Settings) -> bool:
    fall = tried.fall
    return (
        fall is not None
        and fall.p * times < 1 - settings.sure
        and fall.change <= math.log1p(-settings.margin)
        and tried.raw_change <= math.log1p(-settings.margin)
        and shift.lasts(tried.item.values, fall)
    )


def _judgements(tried: Sequence[_Tried], history: History, settings: Settings) -> list[Judgement]:
    falls = shift.adjusted([each.fall.p if each.fall else 1.0 for each in tried])
    rises = shift.adjusted([each.rise.p if each.rise else 1.0 for each in tried])
    return [
        _judgement(each, fall, rise, history, settings)
        for each, fall, rise in zip(tried, falls, rises, strict=True)
    ]


def _judgement(each: _Tried, p_fall: float, p_rise: float, history: History, settings: Settings) -> Judgement:
    item, fall, rise = each.item, each.fall, each.rise
    missing = len(history.ids) - 1 - (history.place[item.probes[-1]] if item.probes else -1)
    if missing >= _FAILED:
        note = fact("probe/not_measured", name=item.name, last_status=item.last_status)
        return Judgement(item.name, "failing" if item.values else "unknown", note=note)
    if fall is None or rise is None:
        needed = LEAST_BEFORE + LEAST_WITHIN
        count = len(item.values)
        note = fact("probe/probes_of_needed", count=count, needed=needed)
        return Judgement(item.name, "unknown", note=note)
    if p_fall < 1 - settings.sure and _is_slower(each, 1.0, settings):
        return _changed(item, "slower", fall, p_fall, history)
    rises = rise.change >= math.log1p(settings.margin) and shift.lasts(item.values, rise)
    if p_rise < 1 - settings.sure and rises:
        return _changed(item, "faster", rise, p_rise, history)
    if each.is_adjusted:
        # The part that went with the machine was removed, so only the measured change itself can be
        # reported.
        return Judgement(item.name, "usual", None, math.expm1(each.raw_change))
    newest = fall if abs(fall.deviate) > abs(rise.deviate) else rise
    return Judgement(item.name, "usual", None, *_ratios(newest))


def _changed(item: ItemHistory, status: str, found: Shift, p: float, history: History) -> Judgement:
    first = history.place[item.probes[-found.length]]
    change, low, high = _ratios(found)
    note = _what_else(history, first)
    return Judgement(item.name, status, history.times_ns[first], change, low, high, 1 - p, note)


def _ratios(found: Shift) -> tuple[float, float, float]:
    """Its change, and both ends of the interval, as ratios."""
    return math.expm1(found.change), math.expm1(found.low), math.expm1(found.high)


def _what_else(history: History, first: int) -> Words | None:
    """Changes of the machine at that time."""
    for place in range(max(1, first - _NEAR), min(len(history.ids), first + _NEAR + 1)):
        before, after = history.kernels[place - 1], history.kernels[place]
        if before != after:
            return fact("probe/kernel_changed", before=before, after=after)
    for place in range(max(1, first - _NEAR), min(len(history.ids), first + _NEAR + 1)):
        if history.boots[place - 1] != history.boots[place]:
            return fact("probe/machine_started_then")
    return None


_TOO_FEW = fact("probe/too_few_probes", probes=LEAST_BEFORE + LEAST_WITHIN)
_OLD = fact("probe/last_probe_too_old")
