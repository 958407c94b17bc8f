"""The part of its input that a capture understood, in the capture's own unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sysdock.sections.section import Capture, InfoLine
from sysdock.sentences import Words, catalogue, fact
from sysdock.text import percent

if TYPE_CHECKING:
    from sysdock.analysis import Session


def unit_words(unit: str) -> Words:
    """The name of a capture's unit; an unknown unit as it is."""
    return fact(f"units/{unit}") if catalogue().entry(f"units/{unit}") else unit


def ending(ended_by: str) -> Words:
    """How a capture ended (`ended_by` of recording.json); an unknown ending as it is."""
    code = f"endings/{ended_by.replace(' ', '_')}"
    return fact(code) if catalogue().entry(code) else ended_by


def understood(_session: Session, capture: Capture) -> list[InfoLine]:
    """Units understood, and lost."""
    seen, total, lost = capture["understood"], capture["total"], capture["lost"]
    unit = unit_words(capture["unit"])
    lost_words = fact("sections/lost_units", lost=lost, unit=unit) if lost else fact("sections/nothing")
    coverage = fact("sections/understood", seen=seen, total=total, share=percent(seen, total))
    return [InfoLine(unit, coverage), InfoLine(fact("sections/lost"), lost_words)]
