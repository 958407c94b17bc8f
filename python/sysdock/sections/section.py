"""Statements of a section: facts and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sysdock.sentences import Words

if TYPE_CHECKING:
    from sysdock.analysis import Session

# A capture of recording.json.
Capture = dict[str, Any]


@dataclass(frozen=True)
class InfoLine:
    """A line of `sysdock info` and of the head of a report: what is stated, and its value."""

    name: Words
    value: Words


@dataclass(frozen=True)
class ScreenTable:
    """A small table of the first screen: a name and four numbers in each row, formed already.

    `trouble`: why there are no rows, where they could not be computed. `of_parts`: a name is that of a part,
    which an analysis wrote (`lock`) with its detail, both words of its own.
    """

    title: Words
    columns: tuple[Words, Words, Words, Words]
    rows: Sequence[tuple[str, tuple[str, str, str, str]]]
    trouble: Words | None = None
    of_parts: bool = False


@dataclass(frozen=True)
class Total:
    """A number that two recordings are compared by: its name, and the unit it is in."""

    value: int | float | None
    name: Words
    unit: str | None


@dataclass(frozen=True)
class Compared:
    """Things that two recordings are compared by, one by one.

    `name`: of the part of `sysdock compare`. `sql` gives the name of each thing, its calls, their time in ns,
    and the bytes that they transferred.
    """

    name: str
    title: Words
    sql: str


@dataclass(frozen=True)
class Statement:
    """Something to say in place of findings, with the commands that show more."""

    text: Words
    commands: Sequence[str]


def _nothing(*_: Any) -> Any:
    return []


@dataclass(frozen=True)
class Section:
    """A part of a recording.

    `about`: the family of events, as `about` of its tables in `knowhow/tables`. `needs`: the tables without
    which it does not appear. `title`: what a recording of it is. `coverage`: how much of what a capture saw
    is in the tables. `screen`: tables of the first screen. `totals`: what `sysdock compare` compares by name;
    `compared`: what it lists by change.
    `statement`: what it says where rules have nothing to judge.
    `conditions`: what two recordings must have in common for their numbers to be comparable, by name.
    """

    about: str
    order: int
    needs: tuple[str, ...]
    title: Words
    coverage: Callable[[Session, Capture], Sequence[InfoLine]]
    screen: Callable[[Session], Sequence[ScreenTable]] = _nothing
    totals: Callable[[Session], dict[str, Total]] | None = None
    compared: Sequence[Compared] = ()
    statement: Callable[[Session, str], Statement | None] | None = None
    conditions: Callable[[Session], dict[str, str]] | None = None
    # The analysis that shows its lines.
    question: str = ""
    # The command that answers questions about it, for a user who tried something else.
    instead: str = ""
    # Whether a command is expected, so that one that is not known is worth a line.
    of_a_command: bool = False
