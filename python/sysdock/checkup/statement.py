"""What a step of the check-up says: a status with sentences whose numbers and recorded names stand apart.

A sentence is a template, so that the same statement can be printed in both languages and, in a bundle, with
its names hashed.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from sysdock.checkup import VERDICTS, worst
from sysdock.text import agreeing, in_words


@dataclass(frozen=True)
class Name:
    """A name from the user's world: `kind` is path, host, word or command."""

    kind: str
    text: str


@dataclass(frozen=True)
class Words:
    """A word of the check-up's own that differs by language."""

    en: str
    ja: str


Rename = Callable[[Name], str]


def as_it_is(name: Name) -> str:
    """The name, unchanged."""
    return name.text


@dataclass(frozen=True)
class Part:
    """One statement of a step: sentence and advice in English and Japanese, templates over `values`.

    `status`: ok, unknown or finding. A unit as format (`{moved:B}`) writes the value as people read it, `n` a
    number without a unit; `{files:n:file}` adds the noun that agrees with it, `{files:?is|are}` is only a
    word that agrees.
    """

    topic: str
    status: str
    sentence: tuple[str, str]
    do: tuple[str, str] | None = None
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """The status in the check-up's words."""
        return VERDICTS[self.status]

    def followed_by(self, remark: Part) -> Part:
        """The same with a remark after its sentence."""
        sentence = (self.sentence[0] + " {remark}", self.sentence[1] + "{remark}")
        return replace(self, sentence=sentence, values={**self.values, "remark": remark})

    def text(self, lang: str, rename: Rename = as_it_is) -> str:
        """The sentence."""
        return self._in(self.sentence, lang, rename)

    def advice(self, lang: str, rename: Rename = as_it_is) -> str:
        """What to do; empty where there is nothing."""
        return self._in(self.do, lang, rename) if self.do else ""

    def plain_values(self, rename: Rename = as_it_is) -> dict[str, Any]:
        """The values as JSON has them; texts of one language only are left out."""
        return {key: _plain(value, rename) for key, value in self.values.items() if not key.endswith("_ja")}

    def _in(self, texts: tuple[str, str], lang: str, rename: Rename) -> str:
        return _Formatter(lang, rename).vformat(texts[lang == "ja"], (), self.values)


@dataclass(frozen=True)
class Step:
    """One of the four steps."""

    number: int
    title: tuple[str, str]
    parts: list[Part]

    @property
    def status(self) -> str:
        """The worst of its parts."""
        return worst([part.status for part in self.parts])

    @property
    def verdict(self) -> str:
        """The status in the check-up's words."""
        return VERDICTS[self.status]


class _Formatter(string.Formatter):
    def __init__(self, lang: str, rename: Rename) -> None:
        self.lang = lang
        self.rename = rename

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, (tuple, list)):
            return ("、" if self.lang == "ja" else ", ").join(
                self.format_field(item, format_spec) for item in value
            )
        if isinstance(value, Name):
            return self.rename(value)
        if isinstance(value, Part):
            return value.text(self.lang, self.rename)
        if isinstance(value, Words):
            return value.ja if self.lang == "ja" else value.en
        if not format_spec:
            return str(value)
        if format_spec.startswith("?"):
            return agreeing(value, format_spec[1:])
        unit, _, noun = format_spec.partition(":")
        number = in_words(value, None if unit == "n" else unit, self.lang)
        return f"{number} {agreeing(value, noun)}" if noun else number


def _plain(value: Any, rename: Rename) -> Any:
    if isinstance(value, Name):
        return rename(value)
    if isinstance(value, Words):
        return value.en
    if isinstance(value, Part):
        return value.plain_values(rename)
    if isinstance(value, (tuple, list)):
        return [_plain(item, rename) for item in value]
    return value
