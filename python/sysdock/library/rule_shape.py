"""The fixed columns of rules, and the sentences that are made of a row.

A sentence is a header line `-- says: STATUS LANG  Text with {column} or {param}.`; `STATUS.VARIANT` is taken
where the row's column `variant` says so. Its places are those of `sysdock.sentences.placeholders`.
`{cause:ja}` is a value of text that the rule chose itself, in that language; a recorded name never is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sysdock.sentences import Prose, Words, fact, fill, names_in, say

STATUSES = ("finding", "unknown", "ok")
CERTAINTIES = ("high", "medium", "low")
_SAYS = re.compile(r"(finding|unknown|ok)(?:\.([a-z_]+))?\s+([a-z]{2})\s+(\S.*)$")


@dataclass(frozen=True)
class Column:
    """A column of a result; `unit` is None for names and counts.

    `head`, `means`: its heading and description in other languages, where those are not the ones in
    `knowhow/sentences`.
    """

    name: str
    type: str
    unit: str | None
    text: str
    head: Words | None = None
    means: Prose | None = None


RULE_COLUMNS = (
    Column("subject", "VARCHAR", None, "What it is about: a file, a program, a call."),
    Column("status", "VARCHAR", None, "finding, ok or unknown."),
    Column("value", "DOUBLE", None, "What was measured."),
    Column("limit_value", "DOUBLE", None, "What it was compared with."),
    Column("cost_ns", "BIGINT", "ns", "Time the pattern took."),
    Column("gain_ns", "BIGINT", "ns", "The most that could be saved."),
    Column(
        "certainty", "VARCHAR", None, "How sure it is that something could be saved: high, medium or low."
    ),
)
# Columns that mean something to a diagnosis where a rule has them.
KNOWN_COLUMNS = {
    "variant": "VARCHAR",  # which sentence of its status
    "file": "VARCHAR",  # evidence: the file,
    "process": "INTEGER",  # the process id,
    "from_s": "DOUBLE",  # and the time range, since the start of the recording
    "until_s": "DOUBLE",
    "cost_calls": "BIGINT",  # of how many calls cost_ns is the time: the part of a tracer is not a gain
    "urgent": "BOOLEAN",  # it comes before all that only costs time
    "circumstance": "BOOLEAN",  # it is about how the recording was made: it comes after all else
    "explained_by": "VARCHAR",  # ids of rules, comma separated: a finding of theirs explains this one
}
# The sentence that a rule may leave out, by status.
_DEFAULTS = {"unknown": "diagnosis/nothing_to_judge"}


@dataclass(frozen=True)
class Sentences:
    """The sentences of a rule by (status, variant, language)."""

    texts: Mapping[tuple[str, str | None, str], str]

    def say(
        self,
        status: str,
        variant: str | None,
        lang: str,
        values: Mapping[str, Any],
        units: Mapping[str, str | None],
    ) -> str:
        """The sentence for a row with these columns and parameters, and their units; KeyError: none."""
        return fill(self.template(status, variant, lang), values, units, lang)

    def template(self, status: str, variant: str | None, lang: str) -> str:
        """The sentence with its places; KeyError: none."""
        stated = self.texts.get((status, variant, lang)) or self.texts.get((status, variant, "en"))
        if stated is None and variant is None and status in _DEFAULTS:
            return say(fact(_DEFAULTS[status]), lang)
        if stated is None:
            raise KeyError(status)
        return stated

    def variants(self, status: str) -> set[str]:
        """Variants of a status that have a sentence."""
        return {variant for of, variant, _ in self.texts if of == status and variant}

    def names(self) -> set[str]:
        """Columns and parameters that they mention."""
        return {name for text in self.texts.values() for name in names_in(text)}


def parse_sentences(lines: Iterable[tuple[int, str]]) -> tuple[Sentences, tuple[int, str] | None]:
    """Reads `says:` lines (number, text); also gives the first line that is no sentence, or stands twice."""
    texts: dict[tuple[str, str | None, str], str] = {}
    for number, line in lines:
        match = _SAYS.match(line)
        if not match or match.groups()[:3] in texts:
            return Sentences({}), (number, line)
        texts[match[1], match[2], match[3]] = match[4]
    return Sentences(texts), None
