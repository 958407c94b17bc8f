"""The part of its input that a capture understood, and what it lost, in the capture's own unit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sysdock.sections.section import Capture, InfoLine
from sysdock.sentences import Fact, fact, named
from sysdock.text import percent

if TYPE_CHECKING:
    from sysdock.analysis import Session

# Captures that ended like this cannot state what they lost, and why.
_UNKNOWN_LOSS = {"running": "sections/recorder_still_runs_or_killed", "input error": "sections/input_damaged"}


def understood(_session: Session, capture: Capture) -> list[InfoLine]:
    """Units understood, and lost."""
    seen, total = capture["understood"], capture["total"]
    unit = named("units", capture["unit"])
    coverage = fact("sections/understood", seen=seen, total=total, share=percent(seen, total))
    return [InfoLine(unit, coverage), InfoLine(fact("sections/lost"), _lost_with_reason(capture))]


def _lost_with_reason(capture: Capture) -> Fact:
    lost, unit = capture["lost"], named("units", capture["unit"])
    reason = _UNKNOWN_LOSS.get(capture["ended_by"])
    if reason:
        return fact("sections/lost_because", lost=lost_of([capture]), why=fact(reason))
    return fact("sections/lost_units", lost=lost, unit=unit) if lost else fact("sections/nothing")


def is_loss_known(captures: Iterable[Capture]) -> bool:
    """Whether each of the captures could state what it lost."""
    return not any(capture["ended_by"] in _UNKNOWN_LOSS for capture in captures)


def lost_of(captures: Iterable[Capture]) -> Fact:
    """How many units were lost: their number, at least this number, or an unknown number."""
    captures = list(captures)
    lost = sum(capture["lost"] for capture in captures)
    if is_loss_known(captures):
        return fact("sections/lost_exactly", lost=lost)
    return fact("sections/lost_at_least", lost=lost) if lost else fact("sections/lost_unknown")
