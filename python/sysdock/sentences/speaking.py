"""Says words in a language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from sysdock.sentences.catalogue import catalogue
from sysdock.sentences.fact import Fact, Joined, Prose, Words, fact, facts_from_json
from sysdock.sentences.placeholders import FORMAT, PLACE, with_unit
from sysdock.text import agreeing


def languages() -> tuple[str, ...]:
    """Codes of all languages, the first of which is English."""
    return tuple(catalogue().languages)


def is_source(lang: str) -> bool:
    """Whether it is the language of names and of know-how files, English: their texts need no look-up."""
    return lang == languages()[0]


def named(subject: str, name: str) -> Words:
    """The fact of a name such as `lines` of the subject `units`; one without a fact as it is."""
    code = f"{subject}/{name.replace(' ', '_')}"
    return fact(code) if catalogue().entry(code) else name


def say(words: Words | None, lang: str) -> str:
    """The text of words in a language; of what has none in it, the English one."""
    match words:
        case Fact():
            return _fact(words, lang)
        case Prose():
            return words.texts.get(lang) or next(iter(words.texts.values()))
        case Joined():
            return catalogue().languages[lang][words.by].join(say(each, lang) for each in words.parts)
        case None:
            return ""
        case _:
            return str(words)


def fill(template: str, values: Mapping[str, Any], units: Mapping[str, str | None], lang: str) -> str:
    """A sentence with its values in the units that they have; KeyError: one is missing."""

    def filled(found: re.Match[str]) -> str:
        name, kind, words = found.groups()
        value, unit = values[name], units.get(name)
        if kind == "?":
            return agreeing(value, words)
        if words and FORMAT.fullmatch(words):
            return format(value, words)
        if isinstance(value, str) and (unit == "word" or words == lang):
            return str(translated(value, lang))
        number = in_words(value, unit, lang)
        return f"{number} {agreeing(value, words)}" if words and words != lang else number

    return PLACE.sub(filled, template)


def in_words(value: Any, unit: str | None, lang: str) -> str:
    """A value with that unit as it appears in a sentence; that it is unknown where there is none."""
    if value is None:
        return catalogue().languages[lang]["unknown"]
    if isinstance(value, str):
        return say(facts_from_json(value), lang) if unit == "fact" else value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value) if isinstance(value, bool) else say(value, lang)
    return with_unit(value, unit)


def _fact(words: Fact, lang: str) -> str:
    entry = catalogue().entry(words.code)
    template = (entry.texts.get(lang) or entry.texts.get("en")) if entry else None
    if entry is None or template is None:
        return _unknown(words, lang)
    try:
        return fill(template, words.values, entry.units, lang)
    except (KeyError, TypeError, ValueError):
        # A fact from elsewhere may lack a value, or have one of another type.
        return _unknown(words, lang)


def _unknown(words: Fact, lang: str) -> str:
    """A fact that has no sentence: of a newer recorder, or of another one."""
    values = ", ".join(f"{name}={in_words(value, None, lang)}" for name, value in words.values.items())
    return f"{words.code} ({values})" if values else words.code


def listed(parts: Iterable[Words], by: str = "comma") -> Joined:
    """Words after each other."""
    return Joined(tuple(parts), by)


def sentences(*parts: Words | None) -> Joined:
    """Sentences after each other; None is left out."""
    return Joined(tuple(part for part in parts if part is not None), "after_sentence")


def translated_keys(key: str) -> tuple[str, ...]:
    """The keys that a know-how file has for a text: `text`, and `text_LANGUAGE` for every other language."""
    return tuple(key if is_source(lang) else f"{key}_{lang}" for lang in languages())


def in_all(words: Words) -> dict[str, str]:
    """The text in every language."""
    return {lang: say(words, lang) for lang in languages()}


def is_text(words: object) -> bool:
    """Whether it is the same in every language."""
    return isinstance(words, str)


def translated(value: Any, lang: str) -> Any:
    """A word that an analysis or recorder chose itself, in a language: `lock`, `waiting: disk`.

    Recorded names in it and what is not known stay as they are.
    """
    if not isinstance(value, str) or is_source(lang):
        return value
    known = catalogue().dictionary("values", lang)
    if value in known:
        return known[value]
    name, opened, inner = value.removesuffix(")").partition(" (")
    if opened and value.endswith(")"):
        return f"{_parts(name, known)} ({_parts(inner, known)})"
    return _parts(value, known)


def _parts(value: str, known: Any) -> str:
    return known.get(value) or ": ".join(known.get(each, each) for each in value.split(": "))
