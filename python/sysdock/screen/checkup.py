"""The text form of `sysdock checkup`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sysdock.sentences import Words, fact, say
from sysdock.text import printable, wrapped

if TYPE_CHECKING:
    from sysdock.checkup.statement import Step

COLUMNS = 100

_DO = fact("checkup/what_to_do")


def _status(status: str) -> Words:
    return fact(f"checkup/status_{status}")


def guide(lang: str) -> list[str]:
    """Printed if nothing was given."""
    return say(fact("checkup/check_up_four_steps"), lang).strip().splitlines()


def step_lines(steps: Sequence[Step], lang: str, columns: int | None = None) -> list[str]:
    """The steps with their verdicts, and below each what was seen and what to do."""
    room = min(columns or COLUMNS, COLUMNS)
    lines = []
    for step in steps:
        verdict = _status(step.status)
        lines += ["", say(fact("checkup/step", number=step.number, verdict=verdict, title=step.title), lang)]
        advised = set()
        for part in step.parts:
            mark = f"[{say(_status(part.status), lang)}] " if len(step.parts) > 1 else ""
            lines += wrapped(printable(mark + part.text(lang)), room, "  ")
            advice = part.advice(lang)
            if advice and advice not in advised:
                lines += wrapped(printable(say(_DO, lang) + advice), room, "    ")
                advised.add(advice)
    return lines[1:]


def heads(lang: str) -> list[str]:
    """Beginnings of lines that are headings."""
    return [say(_DO, lang).strip()]


def status_names(lang: str) -> dict[str, str]:
    """The names of statuses here, and the statuses that they correspond to."""
    return {say(_status(status), lang): status for status in ("ok", "finding", "unknown")}
