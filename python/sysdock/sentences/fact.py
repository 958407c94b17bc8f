"""Facts and the other things that can be said in several languages.

In tables and in recording.json facts are JSON: `[{"code": "load/too_short", "took": 3100000}]`
(`crates/table/src/fact.rs` writes the same).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Fact:
    """A code, `subject/name` of an entry in `knowhow/sentences`, and its values by name.

    A value is a number in the unit of its entry, a recorded text, or words that have languages of their own.
    """

    code: str
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Prose:
    """A text of a know-how file in each of its languages; English where one is missing."""

    texts: Mapping[str, str] = field(hash=False)


@dataclass(frozen=True)
class Joined:
    """Several words after each other, separated as lists (`comma`), notes (`semicolon`) or sentences are."""

    parts: tuple[Words, ...]
    by: str = "comma"


# What can be said in a language. A plain text is the same in all of them: a recorded name, a number.
Words = Fact | Prose | Joined | str


def prose(english: str, **others: str | None) -> Prose:
    """A text with its translations, by language; None where there is none."""
    return Prose({"en": english, **{lang: text for lang, text in others.items() if text}})


def prose_of(entry: Mapping[str, Any], key: str) -> Prose | None:
    """A text of a know-how file, `key`, with its translations `key_LANGUAGE`; None where there is none."""
    if not entry.get(key):
        return None
    suffix = len(key) + 1
    others = {
        name[suffix:]: text
        for name, text in entry.items()
        if name.startswith(f"{key}_") and len(name) == suffix + 2
    }
    return prose(entry[key], **others)


def fact(code: str, **values: Any) -> Fact:
    """A fact with its values."""
    return Fact(code, values)


def facts_from_json(text: str) -> Words:
    """The content of a column or of recording.json: facts, or the plain text of a recording that has none."""
    if not text.startswith("["):
        return text
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return facts_of(entries) if isinstance(entries, list) else text


def fact_from_json(text: str | None) -> Fact | None:
    """The one fact of a column; None for NULL. A text of a recording without facts is stated as it is."""
    if not text:
        return None
    found = facts_from_json(text)
    if isinstance(found, Joined) and len(found.parts) == 1:
        found = found.parts[0]
    return found if isinstance(found, Fact) else Fact("experiment/stated", {"reason": found})


def facts_of(entries: Any) -> Words:
    """Facts that were read from JSON; what is none stays as it is."""
    if isinstance(entries, list):
        return Joined(tuple(facts_of(entry) for entry in entries), "semicolon")
    if isinstance(entries, dict) and isinstance(entries.get("code"), str):
        values = {
            name: facts_of(value) if isinstance(value, list | dict) else value
            for name, value in entries.items()
            if name != "code"
        }
        return Fact(entries["code"], values)
    return entries if isinstance(entries, str) else json.dumps(entries, ensure_ascii=False)


def json_of(facts: Iterable[Words] | Words | None) -> str | None:
    """Facts as columns hold them; None for none."""
    parts = facts.parts if isinstance(facts, Joined) else facts
    found = [parts] if isinstance(parts, Fact | str | Prose) else list(parts or ())
    return json.dumps([entry_of(each) for each in found], ensure_ascii=False) if found else None


def entry_of(words: Any) -> Any:
    """A fact as an object of JSON; other values as they are."""
    if isinstance(words, Fact):
        return {"code": words.code, **{name: entry_of(value) for name, value in words.values.items()}}
    if isinstance(words, Joined):
        return [entry_of(each) for each in words.parts]
    return words
