"""The part of its input that a capture understood, in the capture's own unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sysdock.sections.section import Capture, InfoLine
from sysdock.sentences import fact, named
from sysdock.text import percent

if TYPE_CHECKING:
    from sysdock.analysis import Session


def understood(_session: Session, capture: Capture) -> list[InfoLine]:
    """Units understood, and lost."""
    seen, total, lost = capture["understood"], capture["total"], capture["lost"]
    unit = named("units", capture["unit"])
    lost_words = fact("sections/lost_units", lost=lost, unit=unit) if lost else fact("sections/nothing")
    coverage = fact("sections/understood", seen=seen, total=total, share=percent(seen, total))
    return [InfoLine(unit, coverage), InfoLine(fact("sections/lost"), lost_words)]
