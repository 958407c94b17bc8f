"""Answers of rules as statements of a step: sentences with numbers and recorded names kept apart.

A finding of `sysdock diagnose` is a finished text. A bundle has to hash the names in it, so the check-up
takes the sentences of the rule's header as templates over the row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sysdock.checkup import FINDING, OK, UNKNOWN
from sysdock.checkup.statement import Name, Part, Template
from sysdock.errors import NotComputed
from sysdock.library.rule_shape import RULE_COLUMNS
from sysdock.sentences import PLACE, Words, fact, languages

if TYPE_CHECKING:
    from sysdock.analysis import Session
    from sysdock.library import Analysis

_OF_ALL_RULES = {column.name for column in RULE_COLUMNS} | {"variant"}


@dataclass(frozen=True)
class Question:
    """A rule, and how its rows are shown in the check-up.

    `columns`: names by which the check-up's JSON has columns that all rules have; of these it has no others.
    `names`: columns that hold a name from the user's world, and its kind (`Name.kind`).
    """

    topic: str
    rule: str
    columns: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)


def answers(
    session: Session,
    question: Question,
    limits: Mapping[str, Any] | None = None,
    words: Mapping[str, Any] | None = None,
) -> list[Part]:
    """A statement for each row of the rule, in its order.

    `limits`: values in place of the defaults of the rule's parameters. `words`: what is shown in place of the
    value of a column.
    """
    from sysdock.analysis.diagnosis import doubts, lack

    rule = session.library.rule(question.rule)
    if lacking := lack(session, rule):
        return [Part(question.topic, UNKNOWN, lacking)]
    try:
        result = session.run(rule, limits)
        rows = result.rows()
    except NotComputed as error:
        return [not_computed(question.topic, error)]
    names = [column.name for column in result.columns]
    mentioned = {name: value for name, value in result.values.items() if name in rule.says.names()}
    doubt = doubts(session, session.library.sources(rule.needs))
    advice = _advice(session, rule)
    parts = []
    for values in rows:
        row = {**mentioned, **dict(zip(names, values, strict=True))}
        sentence = _templates(rule, row, question)
        shown = _shown(question, row, words or {})
        if row["status"] == OK and doubt:
            parts.append(Part(question.topic, UNKNOWN, doubt, None, shown))
        else:
            do = advice if row["status"] == FINDING else None
            parts.append(Part(question.topic, row["status"], sentence, do, shown))
    return parts


def not_computed(topic: str, error: NotComputed) -> Part:
    """A part that states that something could not be computed. The engine's message may contain a recorded
    name.
    """
    return Part(
        topic, UNKNOWN, fact("checkup/could_not_computed"), None, {"reason": Name("word", error.fact)}
    )


def _templates(rule: Analysis, row: Mapping[str, Any], question: Question) -> Template:
    """The sentences for a row, with the unit of each column."""
    units = {param.name: param.unit for param in rule.params} | {c.name: c.unit for c in rule.columns}

    def place(found: re.Match[str]) -> str:
        column, kind, words = found.groups()
        # Words that a rule chose come in every language, by `words`.
        words = None if words in languages() else words
        return f"{{{question.columns.get(column, column)}{f'{kind}{words}' if words else ''}}}"

    status, variant = row["status"], row.get("variant")
    texts = {lang: PLACE.sub(place, rule.says.template(status, variant, lang)) for lang in languages()}
    return Template(texts, {question.columns.get(name, name): unit for name, unit in units.items()})


def _shown(question: Question, row: Mapping[str, Any], words: Mapping[str, Any]) -> dict[str, Any]:
    shown = {}
    for column, value in row.items():
        if column in _OF_ALL_RULES and column not in question.columns:
            continue
        if column in question.names and value is not None:
            value = Name(question.names[column], value)
        shown[question.columns.get(column, column)] = words.get(column, value)
    return shown


def _advice(session: Session, rule: Analysis) -> Words | None:
    return session.library.page(rule).first_paragraph("what_to_do")
