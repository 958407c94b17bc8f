"""The fixed columns of rules, and the sentences that are made of a row.

A sentence is a header line `-- says: STATUS LANG  Text with {column} or {param}.`; `STATUS.VARIANT` is taken
where the row's column `variant` says so. Numbers are written with the unit that the header gives the column.
`{files:file}` is the number with that noun (`1 file`, `2 files`; `{n:index|indices}` names its plural),
`{files?is|are}` only the word that agrees with the number. In a Japanese sentence, `{cause:ja}` is a value of
text that the rule chose itself, as `knowhow/headings` translates it; a recorded name never is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sysdock.text import agreeing, in_words

STATUSES = ("finding", "unknown", "ok")
LANGUAGES = ("en", "ja")
CERTAINTIES = ("high", "medium", "low")
_SAYS = re.compile(r"(finding|unknown|ok)(?:\.([a-z_]+))?\s+(en|ja)\s+(\S.*)$")
# A column or parameter, then perhaps `:` or `?` and the words that agree with it.
PLACE = re.compile(r"\{([a-z0-9_]+)(?:([:?])([^{}]+))?\}")


@dataclass(frozen=True)
class Column:
    """A column of a result; `unit` is None for names and counts.

    `ja`, `text_ja`: its Japanese heading and description, where those are not the ones in `knowhow/headings`.
    """

    name: str
    type: str
    unit: str | None
    text: str
    ja: str | None = None
    text_ja: str | None = None


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
# A rule may leave out these sentences.
_DEFAULTS: dict[tuple[str, str | None, str], str] = {
    ("unknown", None, "en"): "The recording does not hold what this rule needs.",
    ("unknown", None, "ja"): "このルールに必要なものが記録にありません。",
}


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
        text = self.template(status, variant, lang)
        return PLACE.sub(lambda found: _filled(found, values[found[1]], units.get(found[1]), lang), text)

    def template(self, status: str, variant: str | None, lang: str) -> str:
        """The sentence with its places; KeyError: none."""
        return self.texts.get((status, variant, lang)) or self.texts[(status, variant, "en")]

    def variants(self, status: str) -> set[str]:
        """Variants of a status that have a sentence."""
        return {variant for of, variant, _ in self.texts if of == status and variant}

    def names(self) -> set[str]:
        """Columns and parameters that they mention."""
        return {found[1] for text in self.texts.values() for found in PLACE.finditer(text)}


def _filled(found: re.Match[str], value: Any, unit: str | None, lang: str) -> str:
    """The text for one place in a sentence."""
    _, kind, words = found.groups()
    if kind == "?":
        return agreeing(value, words)
    number = in_words(value, unit, lang)
    if words == lang:
        from sysdock.library.headings import japanese_value

        return japanese_value(number)
    return f"{number} {agreeing(value, words)}" if words else number


def parse_sentences(lines: Iterable[tuple[int, str]]) -> tuple[Sentences, tuple[int, str] | None]:
    """Reads `says:` lines (number, text); also gives the first line that is no sentence, or stands twice."""
    texts: dict[tuple[str, str | None, str], str] = {}
    for number, line in lines:
        match = _SAYS.match(line)
        if not match or match.groups()[:3] in texts:
            return Sentences({}), (number, line)
        texts[match[1], match[2], match[3]] = match[4]
    return Sentences({**_DEFAULTS, **texts}), None
