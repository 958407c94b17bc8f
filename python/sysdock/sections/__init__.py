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

from sysdock.errors import UserError
from sysdock.sections.section import Capture, Compared, InfoLine, ScreenTable, Section, Statement, Total
from sysdock.sentences import languages, say

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


def require_about(session: Session, about: str) -> None:
    """Raises UserError unless the recording holds tables about it: nothing else can be asked this."""
    known = session.contents or session.recording.families
    if about in known:
        return
    titles = {section.about: say(section.title, languages()[0]) for section in all_sections()}
    held = [section for section in all_sections() if section.about in known]
    kinds = " and ".join(titles[section.about] for section in held) or "nothing yet"
    instead = [section.instead for section in held if section.instead]
    hint = "; ".join([*instead, "`sysdock run -- CMD` records calls"])
    fact = f"no {titles.get(about, about)} in this recording, which holds: {kinds}"
    raise UserError(fact, hint, str(session.recording.folder))


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
    "require_about",
    "section_of",
    "sections_of",
]
