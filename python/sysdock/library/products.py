"""Reads products, `knowhow/products/<name>.toml`: what a program is known by, and advice for it by rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from sysdock.errors import UserError, did_you_mean
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
    data = read_toml(path)
    _closed(path, "the product", data, _KEYS, ("name", "advice"))
    programs, files = (_texts(path, key, data.get(key, [])) for key in ("programs", "files"))
    if not programs and not files:
        hint = 'write `programs = ["sqlite3"]`, or `files = ["*.sqlite"]`'
        raise UserError("it names nothing by which it is recognized", hint, str(path))
    if not isinstance(data["advice"], list) or not data["advice"]:
        raise UserError("`advice` is not a list of tables", "write [[advice]]", str(path))
    if not isinstance(data.get("is_language", False), bool):
        raise UserError("`is_language` is neither true nor false", place=str(path))
    return Product(
        id=path.stem,
        path=path,
        name=_text(path, "name", data["name"]),
        is_language=data.get("is_language", False),
        programs=programs,
        files=files,
        advice=_advice(path, data["advice"]),
    )


def _advice(path: Path, entries: list[Any]) -> dict[str, Prose]:
    found: dict[str, Prose] = {}
    for number, entry in enumerate(entries, 1):
        _closed(path, f"advice {number}", entry, _ADVICE_KEYS, _ADVICE_KEYS[:2])
        texts = Prose({lang: _text(path, lang, entry[lang]) for lang in languages() if lang in entry})
        rules = _texts(path, "rules", entry["rules"])
        if not rules:
            raise UserError(f"advice {number} names no rule", 'write `rules = ["io/seeks"]`', str(path))
        for rule in rules:
            if rule in found:
                hint = "there is one paragraph for each rule"
                raise UserError(f"advice {number} names `{rule}` again", hint, str(path))
            found[rule] = texts
    return found


def _text(path: Path, key: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UserError(f"`{key}` is not text", place=str(path))
    return one_line(value.strip())


def _texts(path: Path, key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise UserError(f"`{key}` is not a list of texts", place=str(path))
    return tuple(value)


def _closed(path: Path, what: str, entry: Any, allowed: tuple[str, ...], needed: tuple[str, ...]) -> None:
    """Refuses a key that is not `allowed`, and the lack of one that is `needed`."""
    if not isinstance(entry, dict):
        raise UserError(f"{what} is not a table of keys", place=str(path))
    for key in entry:
        if key not in allowed:
            hint = did_you_mean(key, allowed, f"the keys are {', '.join(allowed)}")
            raise UserError(f"{what} has the unknown key `{key}`", hint, str(path))
    for key in needed:
        if key not in entry:
            raise UserError(f"{what} lacks the key `{key}`", place=str(path))
