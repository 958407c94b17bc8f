"""The parts of a recording on the first screen, in `sysdock info` and in the report.

One module of this folder for each part, found by a folder scan: a new part adds its file. A section appears
because the tables it needs are there, whoever recorded them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from sysdock.sections.section import Capture, Compared, InfoLine, ScreenTable, Section, Statement, Total

if TYPE_CHECKING:
    from sysdock.analysis import Session


@cache
def all_sections() -> tuple[Section, ...]:
    """The sections of all modules here that have a `SECTION`, in order."""
    names = (module.name for module in pkgutil.iter_modules(__path__))
    modules = (importlib.import_module(f"{__name__}.{name}") for name in sorted(names))
    found = [section for module in modules if (section := getattr(module, "SECTION", None))]
    return tuple(sorted(found, key=lambda section: section.order))


def sections_of(session: Session) -> list[Section]:
    """The sections whose tables the recording has."""
    held = set(session.views.available)
    return [section for section in all_sections() if held.issuperset(section.needs)]


def section_of(capture: Capture) -> Section | None:
    """The section of what a capture set out to record, in the first place; None where there is none."""
    by_about = {section.about: section for section in all_sections()}
    families = [state.get("family") for state in capture.get("families") or []]
    return next((by_about[family] for family in families if family in by_about), None)


def contents(captures: Sequence[Capture]) -> list[str]:
    """Kinds of captures, each once: `calls`, `scan`, ...; also those without a section."""
    found: dict[str, None] = {}
    for capture in captures:
        section = section_of(capture)
        families = capture.get("families") or [{"family": capture["recorder"]}]
        found[section.about if section else families[0]["family"]] = None
    return list(found)


__all__ = [
    "Capture",
    "Compared",
    "InfoLine",
    "ScreenTable",
    "Section",
    "Statement",
    "Total",
    "all_sections",
    "contents",
    "section_of",
    "sections_of",
]
