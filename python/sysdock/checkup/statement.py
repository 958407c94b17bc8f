"""What a step of the check-up says: verdicts with sentences whose numbers and recorded names stand apart.

A sentence is a template, so that the same statement can be printed in both languages and, in a bundle, with
its names hashed.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sysdock.checkup import worst
from sysdock.text import in_words


@dataclass(frozen=True)
class Name:
    """A name from the user's world: `kind` is path, host, word or command."""

    kind: str
    text: str


Rename = Callable[[Name], str]


def as_it_is(name: Name) -> str:
    """The name, unchanged."""
    return name.text


@dataclass(frozen=True)
class Part:
    """One statement of a step: sentence and advice in English and Japanese, templates over `values`.

    The format `ratio` truncates to three digits, a unit (`s`, `B`, `B/s`) writes the value as people read it.
    """

    topic: str
    verdict: str
    said: tuple[str, str]
    do: tuple[str, str] | None = None
    values: dict[str, Any] = field(default_factory=dict)

    def text(self, lang: str, rename: Rename = as_it_is) -> str:
        """The sentence."""
        return self._in(self.said, lang, rename)

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
    def verdict(self) -> str:
        """The worst of its parts."""
        return worst([part.verdict for part in self.parts])


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
        if format_spec == "ratio":
            from sysdock.checkup.ratio import truncated

            return truncated(Fraction(value))
        if isinstance(value, Fraction):
            value = float(value)
        if isinstance(value, (int, float)) and (format_spec in ("s", "B", "B/s", "n")):
            return in_words(value, None if format_spec == "n" else format_spec, self.lang)
        return str(value)


def _plain(value: Any, rename: Rename) -> Any:
    if isinstance(value, Name):
        return rename(value)
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, Part):
        return value.plain_values(rename)
    if isinstance(value, (tuple, list)):
        return [_plain(item, rename) for item in value]
    return value
