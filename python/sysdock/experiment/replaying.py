"""Whether an experiment that was run again, perhaps on another machine, gives the same results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sysdock.analysis import Session
from sysdock.experiment.environment import Difference, between
from sysdock.experiment.plan import CONTROL
from sysdock.experiment.verdicts import CHANGED, EQUIVALENT
from sysdock.library import Library
from sysdock.recording import Recording

REPRODUCED, NOT_REPRODUCED, NOT_COMPARABLE = "reproduced", "not reproduced", "not comparable"
_CONCLUSIVE = (CHANGED, EQUIVALENT)
# This many fields are named, further ones are counted.
_MOST_NAMED = 8


@dataclass(frozen=True)
class Outcome:
    """A verdict of the claim, before and again. `ratios`: scenario over baseline; None: there is none."""

    place: str
    outcome: str
    reason: str
    ratios: tuple[float | None, float | None]


def compare(first: Recording, again: Recording, library: Library) -> tuple[list[Outcome], list[Difference]]:
    """The outcomes of all verdicts of the claim, and what differs between the machines.

    A verdict that holds again is reproduced, whatever differs. One that does not is called *not reproduced*
    only where the machines are alike in all that results may depend on; otherwise, or where one of the runs
    decided nothing, the two are not comparable.
    """
    with Session(first, library) as before, Session(again, library) as after:
        sql = "SELECT section, name, value, source FROM environment"
        differences = between(library.environment(), after.fetch(sql), before.fetch(sql))
        pairs = _pairs(before, after)
    return [_outcome(place, *pair, differences) for place, pair in pairs.items()], differences


def _pairs(
    before: Session, after: Session
) -> dict[str, tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]]:
    ours, theirs = (_claims(session) for session in (before, after))
    return {place: (ours.get(place), theirs.get(place)) for place in dict.fromkeys([*ours, *theirs])}


def _claims(session: Session) -> dict[str, dict[str, Any]]:
    return {
        ", ".join(word for word in (row["workload"], row["parameters"], row["scenario"]) if word): row
        for row in session.run("experiment/verdicts").dicts()
        if row["is_primary"] and row["scenario"] != CONTROL
    }


def _outcome(
    place: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    differences: Sequence[Difference],
) -> Outcome:
    ratios = (before["ratio"] if before else None, after["ratio"] if after else None)
    if before is None or after is None:
        return Outcome(
            place, NOT_COMPARABLE, f"only the {'second' if before is None else 'first'} has it", ratios
        )
    for which, row in (("first", before), ("second", after)):
        if row["verdict"] not in _CONCLUSIVE:
            return Outcome(place, NOT_COMPARABLE, f"the {which} is {row['verdict']}", ratios)
    if _agree(before, after):
        return Outcome(place, REPRODUCED, f"both: {before['verdict']}", ratios)
    words = f"the first: {_in_words(before)}; the second: {_in_words(after)}"
    if differences:
        return Outcome(place, NOT_COMPARABLE, f"{words}; the machines differ: {named(differences)}", ratios)
    return Outcome(place, NOT_REPRODUCED, words, ratios)


def _agree(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether both have the same verdict and a change in the same direction."""
    if before["verdict"] != after["verdict"]:
        return False
    return before["verdict"] == EQUIVALENT or _sign(before) == _sign(after)


def _sign(row: Mapping[str, Any]) -> bool:
    return bool(row["scenario_median"] > row["baseline_median"])


def _in_words(row: Mapping[str, Any]) -> str:
    if row["verdict"] == CHANGED and row["ratio"] is not None:
        return f"changed by {100 * (row['ratio'] - 1):+.1f} %"
    return str(row["verdict"])


def named(differences: Iterable[Difference]) -> str:
    """Fields by name; of many the first ones and how many there are."""
    names = [f"{each.section} {each.name}" for each in differences]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
