"""Reads what an environment definition states of a machine, `knowhow/environment/<section>.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sysdock.entries import Entries
from sysdock.library.tables import read_toml
from sysdock.sentences import Prose, prose, prose_of, translated_keys

_KEYS = (*translated_keys("text"), "fields")
_SOURCES = ("file", "each", "command", "hash")
_TEXTS = ("name", *translated_keys("text"), "file", "each", "pattern", "unit", "default")
_TYPES = {
    **dict.fromkeys((*_TEXTS, "absent", "unmatched", "fails_as"), str),
    **dict.fromkeys(("command", "hash", "except"), list[str]),
    **dict.fromkeys(("defines", "choice", "is_hashed"), bool),
}


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
    read = Entries(path)
    data = read.closed("the section", read_toml(path), _KEYS, ("text",))
    entries = read.entries(data, "fields")
    if not entries:
        raise read.wrong("it has no fields", "write [[fields]]")
    fields = tuple(_field(read, f"field {number}", entry) for number, entry in enumerate(entries, 1))
    names = [field.name for field in fields]
    if twice := {name for name in names if names.count(name) > 1}:
        raise read.wrong(f"the field `{min(twice)}` appears twice")
    return EnvironmentSection(path.stem, path, *read.both(data), fields)


def _field(read: Entries, what: str, entry: Any) -> EnvironmentField:
    read.typed(what, entry, _TYPES, ("name",))
    for key, value in entry.items():
        if value in ("", []):
            raise read.wrong(f"{what}: `{key}` is empty")
    if sum(key in entry for key in _SOURCES) != 1:
        raise read.wrong(f"{what} needs one of {', '.join(_SOURCES)}")
    if ("{1}" in entry["name"]) != ("each" in entry) or entry.get("each", "*").count("*") != 1:
        raise read.wrong(f"{what}: `each` has one `*`, and the name {{1}}")
    read.pattern(what, entry.get("pattern", ""))
    values: dict[str, Any] = {
        key.replace("except", "except_"): tuple(value) if isinstance(value, list) else value
        for key, value in entry.items()
        if key not in translated_keys("text")
    }
    # In the language of names, a document shows the name.
    texts = prose_of({**entry, "text": entry["name"]}, "text") or prose(entry["name"])
    return EnvironmentField(text=entry.get("text", entry["name"]), texts=texts, **values)
