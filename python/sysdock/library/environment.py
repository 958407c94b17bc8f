"""Reads what an environment definition states of a machine, `knowhow/environment/<section>.toml`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sysdock.errors import UserError, did_you_mean
from sysdock.library.tables import read_toml
from sysdock.sentences import Prose, prose, prose_of, translated_keys

_KEYS = (*translated_keys("text"), "fields")
_SOURCES = ("file", "each", "command", "hash")
_TEXTS = (
    "name",
    *translated_keys("text"),
    "file",
    "each",
    "pattern",
    "unit",
    "default",
    "absent",
    "unmatched",
    "fails_as",
)
_LISTS = ("command", "hash", "except")
_FLAGS = ("defines", "choice", "is_hashed")


@dataclass(frozen=True)
class EnvironmentField:
    """A field and where its value is read.

    One source of four: `file`; `each`, a path with one `*`, which makes a field of each match ({1} in the
    name is what `*` matched, patterns in `except_` leave some out); `command`; `hash`, of whose paths the
    first that is there is hashed. `pattern`: what of it is the value; its matches are joined. `absent`,
    `unmatched`, `fails_as`: the value where the file is missing, nothing matches, the command fails.
    `default`: what it is on an untuned machine. `defines`: results depend on it, so two machines
    are compared by it.
    """

    name: str
    text: str
    texts: Prose
    file: str | None = None
    each: str | None = None
    command: tuple[str, ...] = ()
    hash: tuple[str, ...] = ()
    except_: tuple[str, ...] = ()
    pattern: str | None = None
    unit: str | None = None
    default: str | None = None
    absent: str | None = None
    unmatched: str | None = None
    fails_as: str | None = None
    defines: bool = True
    choice: bool = False
    is_hashed: bool = False


@dataclass(frozen=True)
class EnvironmentSection:
    """A section of an environment definition: its id is the name of its file."""

    id: str
    path: Path
    text: str
    texts: Prose
    fields: tuple[EnvironmentField, ...]


def parse_environment(path: Path) -> EnvironmentSection:
    """Reads one section; a UserError names the file and what is wrong in it."""
    data = read_toml(path)
    for key in data:
        if key not in _KEYS:
            raise UserError(
                f"unknown key `{key}`", did_you_mean(key, _KEYS, f"{', '.join(_KEYS)}"), str(path)
            )
    if not isinstance(data.get("text"), str):
        raise UserError("`text` is needed", None, str(path))
    entries = data.get("fields")
    if not isinstance(entries, list) or not entries:
        raise UserError("it has no fields", "write [[fields]]", str(path))
    fields = tuple(_field(path, number, entry) for number, entry in enumerate(entries, 1))
    names = [field.name for field in fields]
    if twice := {name for name in names if names.count(name) > 1}:
        raise UserError(f"the field `{min(twice)}` appears twice", None, str(path))
    return EnvironmentSection(path.stem, path, data["text"], _prose(data, data["text"]), fields)


def _field(path: Path, number: int, entry: Any) -> EnvironmentField:
    place = str(path)
    if not isinstance(entry, dict):
        raise UserError(f"field {number} is not a table", "write [[fields]]", place)
    known = (*_TEXTS, *_LISTS, *_FLAGS)
    for key, value in entry.items():
        if key not in known:
            raise UserError(
                f"field {number}: unknown key `{key}`", did_you_mean(key, known, ", ".join(known)), place
            )
        if not _fits(key, value):
            raise UserError(f"field {number}: `{key}` has a value of the wrong type", None, place)
    if "name" not in entry:
        raise UserError(f"field {number} needs `name`", None, place)
    if sum(key in entry for key in _SOURCES) != 1:
        raise UserError(f"field {number} needs one of {', '.join(_SOURCES)}", None, place)
    if ("{1}" in entry["name"]) != ("each" in entry) or entry.get("each", "*").count("*") != 1:
        raise UserError(f"field {number}: `each` has one `*`, and the name {{1}}", None, place)
    try:
        re.compile(entry.get("pattern", ""))
    except re.error as error:
        raise UserError(f"field {number}: `pattern`: {error}", None, place) from None
    values = {
        key.replace("except", "except_"): tuple(v) if isinstance(v, list) else v for key, v in entry.items()
    }
    texts = _prose(entry, entry["name"])
    plain = {key: value for key, value in values.items() if key not in translated_keys("text")[1:]}
    return EnvironmentField(**{"text": entry["name"], "texts": texts, **plain})


def _prose(entry: dict[str, Any], english: str) -> Prose:
    return prose_of({**entry, "text": english}, "text") or prose(english)


def _fits(key: str, value: Any) -> bool:
    if key in _FLAGS:
        return isinstance(value, bool)
    if key in _LISTS:
        return isinstance(value, list) and bool(value) and all(isinstance(word, str) for word in value)
    return isinstance(value, str) and value != ""
