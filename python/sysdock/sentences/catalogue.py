"""Reads `knowhow/sentences/*.toml`: the entries of a subject, and the languages there are."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sysdock.noted import Noted
from sysdock.own_files import own_root

_ASSETS = Path(__file__).parent / "assets"


@dataclass(frozen=True)
class Entry:
    """A sentence by language, and the units of its values. `count`, `number`, `text` and `word` are none."""

    texts: Mapping[str, str]
    units: Mapping[str, str]


class Catalogue:
    """The sentences of a folder, read as they are needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._subjects: dict[str, dict[str, Any]] = {}

    @functools.cached_property
    def languages(self) -> dict[str, dict[str, str]]:
        """Languages by code, the first of which has every sentence: name, and what joins parts of a text."""
        return self.subject("languages")

    def subject(self, name: str) -> dict[str, Any]:
        """Everything in one file; empty where there is none."""
        if name not in self._subjects:
            path = self.folder / f"{name}.toml"
            self._subjects[name] = _parsed(path) if path.is_file() else {}
        return self._subjects[name]

    def subjects(self) -> list[str]:
        """Names of all files."""
        return sorted(path.stem for path in self.folder.glob("*.toml"))

    def entry(self, code: str) -> Entry | None:
        """The entry of a code, `subject/name`; None where there is none, as of a newer recorder."""
        subject, _, name = code.partition("/")
        # A code may come from a recording, and a name of a file never does.
        entry = self.subject(subject).get(name) if subject.isidentifier() else None
        if not isinstance(entry, dict):
            return None
        return Entry({lang: entry[lang] for lang in self.languages if lang in entry}, entry.get("values", {}))

    def template(self, code: str, lang: str) -> str:
        """The sentence of a code as the catalogue has it, with its places; English where it has no other."""
        entry = self.entry(code)
        return (entry.texts.get(lang) or entry.texts["en"]) if entry else code

    def dictionary(self, name: str, lang: str) -> Mapping[str, str]:
        """A file of English words with their translations, as one language has them."""
        if (name, lang) not in self._dictionaries:
            entries = self.subject(name).items()
            self._dictionaries[name, lang] = {en: texts[lang] for en, texts in entries if lang in texts}
        return self._dictionaries[name, lang]

    @functools.cached_property
    def _dictionaries(self) -> dict[tuple[str, str], Mapping[str, str]]:
        return {}


@functools.cache
def catalogue() -> Catalogue:
    """The catalogue that comes with sysdock."""
    return Catalogue(own_root() / "sentences")


def _noted(path: Path) -> Noted:
    return Noted(_ASSETS / f"{path.stem}.json")


def _parsed(path: Path) -> dict[str, Any]:
    text = path.read_text("utf-8")
    noted: dict[str, Any] | None = _noted(path).get(text)
    return tomllib.loads(text) if noted is None else noted


def note_sentences(folder: Path) -> None:
    """Stores the parsed form of each file: parsing them would take longer than saying all that is said."""
    for path in folder.glob("*.toml"):
        text = path.read_text("utf-8")
        _noted(path).write({text: tomllib.loads(text)})
