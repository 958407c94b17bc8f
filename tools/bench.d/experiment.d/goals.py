"""Numbers with the goal next to them: a table to read, or JSON."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Result:
    """A line: what was done, what came of it, and the goal. `is_met` None: there is no goal for it."""

    part: str
    what: str
    shown: str
    value: float | None
    goal: str = ""
    is_met: bool | None = None
    details: dict[str, str | float] = field(default_factory=dict)


def share(count: int, of: int) -> str:
    """A share as it is printed, with the numbers that it is made of."""
    return f"{100 * count / of:.2f} % ({count:,} of {of:,})" if of else "none"


def at_most(part: str, what: str, count: int, of: int, limit: float, **details: str | float) -> Result:
    """A share that is to be small."""
    value = count / of if of else None
    is_met = None if value is None else value <= limit
    return Result(part, what, share(count, of), value, f"at most {100 * limit:g} %", is_met, details)


def at_least(part: str, what: str, count: int, of: int, limit: float, **details: str | float) -> Result:
    """A share that is to be large."""
    value = count / of if of else None
    is_met = None if value is None else value >= limit
    return Result(part, what, share(count, of), value, f"at least {100 * limit:g} %", is_met, details)


def table(results: Sequence[Result]) -> str:
    """The results of one part in Markdown."""
    names = list(dict.fromkeys(name for each in results for name in each.details))
    head = ["", *names, "result", "goal", "met"]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for each in results:
        met = {True: "yes", False: "**no**", None: ""}[each.is_met]
        cells = [each.what, *(_cell(each.details.get(name, "")) for name in names)]
        lines.append(f"| {' | '.join([*cells, each.shown, each.goal, met])} |")
    return "\n".join(lines)


def _cell(value: str | float) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


@contextmanager
def until_interrupted() -> Iterator[list[KeyboardInterrupt]]:
    """Ends what takes long at Ctrl-C, so that what is there can be said; whoever used it raises what was caught."""
    caught: list[KeyboardInterrupt] = []
    try:
        yield caught
    except KeyboardInterrupt as error:
        caught.append(error)


class Progress:
    """A line on standard error that is written over, at most twice a second; nothing where nobody sees it."""

    def __init__(self) -> None:
        self._shown = 0.0
        self._is_seen = sys.stderr.isatty()

    def __call__(self, words: str) -> None:
        now = time.monotonic()
        if self._is_seen and now - self._shown > 0.5:
            print(f"\r\033[K{words}", end="", file=sys.stderr, flush=True)
            self._shown = now

    def clear(self) -> None:
        """Before something else is printed."""
        if self._is_seen:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
