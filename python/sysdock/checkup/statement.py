"""Statements of a step of the check-up: a status, and sentences with numbers and recorded names kept apart.

A sentence gets its values when it is said, so that in a bundle the names in it can be hashed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sysdock.checkup import VERDICTS, worst
from sysdock.sentences import Fact, Joined, Prose, Words, fill, languages, say, sentences


@dataclass(frozen=True)
class Name:
    """A name from the user's world: `kind` is path, host, word or command."""

    kind: str
    text: str


@dataclass(frozen=True)
class Template:
    """The sentence of a rule by language, with places for values in these units."""

    texts: Mapping[str, str]
    units: Mapping[str, str | None]


Sentence = Words | Template


Rename = Callable[[Name], str]


def as_it_is(name: Name) -> str:
    """The name, unchanged."""
    return name.text


@dataclass(frozen=True)
class Part:
    """One statement of a step: its sentences and its advice, with values for their placeholders.

    `status`: ok, unknown or finding.
    """

    topic: str
    status: str
    sentence: Sentence | tuple[Sentence, ...]
    do: Words | None = None
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """The status in the check-up's words."""
        return VERDICTS[self.status]

    def followed_by(self, remark: Part) -> Part:
        """The part with a remark after its sentences."""
        values = {**self.values, **remark.values}
        return replace(
            self, sentence=(*all_sentences(self.sentence), *all_sentences(remark.sentence)), values=values
        )

    def text(self, lang: str, rename: Rename = as_it_is) -> str:
        """The sentences."""
        return say(self._in(self.sentence, rename), lang)

    def advice(self, lang: str, rename: Rename = as_it_is) -> str:
        """The advice; empty if there is none."""
        return say(self._in(self.do, rename), lang) if self.do else ""

    def plain_values(self, rename: Rename = as_it_is) -> dict[str, Any]:
        """The values as JSON has them, words in English."""
        return {key: _plain(value, rename) for key, value in self.values.items()}

    def _in(self, sentence: Sentence | tuple[Sentence, ...], rename: Rename) -> Words:
        values = {key: _said(value, rename) for key, value in self.values.items()}
        return sentences(*(_filled(each, values) for each in all_sentences(sentence)))


def all_sentences(sentence: Sentence | tuple[Sentence, ...]) -> tuple[Sentence, ...]:
    """Sentences one by one."""
    return sentence if isinstance(sentence, tuple) else (sentence,)


def _filled(sentence: Sentence, values: Mapping[str, Any]) -> Words:
    match sentence:
        case Template():
            texts = {lang: fill(text, values, sentence.units, lang) for lang, text in sentence.texts.items()}
            return Prose(texts)
        case Fact():
            return Fact(sentence.code, {**values, **sentence.values})
        case Joined():
            return Joined(tuple(_filled(each, values) for each in sentence.parts), sentence.by)
        case _:
            return sentence


def _said(value: Any, rename: Rename) -> Any:
    """A value as sentences have it."""
    if isinstance(value, Name):
        return rename(value)
    if isinstance(value, Part):
        return value._in(value.sentence, rename)
    if isinstance(value, (tuple, list)):
        return Joined(tuple(_said(each, rename) for each in value))
    return value


@dataclass(frozen=True)
class Step:
    """One of the four steps."""

    number: int
    title: Words
    parts: list[Part]

    @property
    def status(self) -> str:
        """The worst of its parts."""
        return worst([part.status for part in self.parts])

    @property
    def verdict(self) -> str:
        """The status in the check-up's words."""
        return VERDICTS[self.status]


def _plain(value: Any, rename: Rename) -> Any:
    if isinstance(value, Name):
        return rename(value)
    if isinstance(value, Fact | Prose | Joined):
        return say(value, languages()[0])
    if isinstance(value, Part):
        return value.plain_values(rename)
    if isinstance(value, (tuple, list)):
        return [_plain(item, rename) for item in value]
    return value
