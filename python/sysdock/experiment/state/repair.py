"""Undoes what experiments left that were broken off: killed, or by a power cut."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sysdock.errors import UserError
from sysdock.experiment.state.journal import Journal, Written, folder, journals
from sysdock.experiment.state.kind import Difference
from sysdock.experiment.state.processes import process
from sysdock.experiment.state.undo import undo_one

# Time that a tool of a killed experiment may run: mkfs on a slow disk [s].
_PATIENCE_S = 120.0
_PAUSE_S = 0.05


@dataclass
class Repaired:
    """One experiment that was broken off: `what` it was, the number of changes undone, and what is left."""

    what: str
    path: Path
    undone: int = 0
    left: list[Difference] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether nothing is left, and the journal is gone."""
        return not self.left


def repair(say: Callable[[str], None]) -> list[Repaired]:
    """Undoes what journals say whose process is gone, newest first; `say` gets a sentence for each.

    It may be repeated, and broken off at any moment: what it did not reach, the next one does. Settings that
    a restart has reset are compared and left alone.
    """
    found: list[Repaired] = []
    unreadable: list[UserError] = []
    for written in journals(unreadable):
        if written.is_alive:
            continue
        done = _one(written)
        if done is None:
            continue
        found.append(done)
        say(_sentence(done))
        for difference in done.left:
            say(f"  {difference}")
    for error in unreadable:
        say(f"not repaired: {error.place}: {error.fact}")
        difference = Difference("journal", str(error.place), "a journal", error.fact)
        found.append(Repaired("an unknown experiment", Path(str(error.place)), 0, [difference]))
    _remove_unfinished()
    return found


def _one(written: Written) -> Repaired | None:
    until = time.monotonic() + _PATIENCE_S
    while (journal := Journal.take_over(written)) is None:
        if not written.path.exists():
            return None
        if time.monotonic() > until:
            why = "a tool that it started, or another repair, is still running"
            return Repaired(
                written.what, written.path, 0, [Difference("journal", written.path.name, "free", why)]
            )
        time.sleep(_PAUSE_S)
    done = Repaired(written.what, written.path)
    try:
        _undo_all(journal, done)
        if done.left:
            # Options of a mount that could not be put back went with the mount.
            _undo_all(journal, done)
        for line in journal.written.bad:
            place = f"{written.path}:{line}"
            done.left.append(
                Difference("journal", place, "a readable line", "it is damaged; inspect and remove it")
            )
    finally:
        journal.close()
    return done


def _undo_all(journal: Journal, done: Repaired) -> None:
    done.left = []
    for number, entry in sorted(journal.written.open.items(), reverse=True):
        if different := undo_one(journal, number, entry):
            done.left += different
        else:
            done.undone += 1


def _sentence(done: Repaired) -> str:
    changes = "1 change" if done.undone == 1 else f"{done.undone} changes"
    if done.complete:
        return f"repaired: {changes} undone of {done.what}"
    return f"not fully repaired: {changes} undone of {done.what}, {len(done.left)} left (see {done.path})"


def _remove_unfinished() -> None:
    """Files of journals that were being begun when their process was killed. Who is alive would be in the
    middle.
    """
    for path in folder().glob("*.journal.new"):
        pid, _, rest = path.name.partition("-")
        start = rest.partition("-")[0]
        now = process(int(pid)) if pid.isdecimal() else None
        if now is None or str(now.start) != start:
            path.unlink(missing_ok=True)
