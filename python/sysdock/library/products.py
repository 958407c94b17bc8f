"""Reads products, `knowhow/products/<name>.toml`: what a program is known by, and advice for it by rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from sysdock.entries import Entries
from sysdock.library.page import one_line
from sysdock.library.tables import read_toml
from sysdock.sentences import Prose, languages

_KEYS = ("name", "is_language", "programs", "files", "advice")
_ADVICE_KEYS = ("rules", *languages())


@dataclass(frozen=True)
class Product:
    """A program, library or language, and what helps it in particular.

    `programs` and `files` are patterns (`*`, `?`, `[...]`) of programs and of whole paths; `*` matches
    slashes, too. `advice`: a paragraph in each language by rule (`io/seeks`), or rule and variant
    (`io/small_requests.write`). A language (`is_language`) gives way to a product with advice for the rule.
    """

    id: str
    path: Path
    name: str
    is_language: bool
    programs: tuple[str, ...]
    files: tuple[str, ...]
    advice: Mapping[str, Prose]

    def advises(self, rule: str, variant: str | None) -> Prose | None:
        """The paragraph for a finding of a rule; None where it has none."""
        return self.advice.get(f"{rule}.{variant}") or self.advice.get(rule)

    def is_run_by(self, programs: Iterable[str]) -> bool:
        """Whether one of the programs is this product."""
        return any(fnmatchcase(program, pattern) for program in programs for pattern in self.programs)

    def has(self, file: str) -> bool:
        """Whether a file is one of this product."""
        return any(fnmatchcase(file, pattern) for pattern in self.files)


def parse_product(path: Path) -> Product:
    """Reads one product; a UserError names the file and what is wrong in it."""
    read = Entries(path)
    data = read.closed("the product", read_toml(path), _KEYS, ("name", "advice"))
    programs, files = (read.texts(key, data.get(key, [])) for key in ("programs", "files"))
    if not programs and not files:
        hint = 'write `programs = ["sqlite3"]`, or `files = ["*.sqlite"]`'
        raise read.wrong("it names nothing by which it is recognized", hint)
    if not isinstance(data["advice"], list) or not data["advice"]:
        raise read.wrong("`advice` is not a list of tables", "write [[advice]]")
    return Product(
        id=path.stem,
        path=path,
        name=_text(read, "name", data["name"]),
        is_language=read.flag("is_language", data.get("is_language", False)),
        programs=programs,
        files=files,
        advice=_advice(read, data["advice"]),
    )


def _advice(read: Entries, entries: list[Any]) -> dict[str, Prose]:
    found: dict[str, Prose] = {}
    for number, entry in enumerate(entries, 1):
        read.closed(f"advice {number}", entry, _ADVICE_KEYS, _ADVICE_KEYS[:2])
        texts = Prose({lang: _text(read, lang, entry[lang]) for lang in languages() if lang in entry})
        rules = read.texts("rules", entry["rules"])
        if not rules:
            raise read.wrong(f"advice {number} names no rule", 'write `rules = ["io/seeks"]`')
        for rule in rules:
            if rule in found:
                raise read.wrong(
                    f"advice {number} names `{rule}` again", "there is one paragraph for each rule"
                )
            found[rule] = texts
    return found


def _text(read: Entries, key: str, value: Any) -> str:
    return one_line(read.text(key, value, is_prose=False).strip())
