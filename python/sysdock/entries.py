"""Reads TOML that anybody may have written, whose keys are all known, and writes texts for it."""

from __future__ import annotations

import json
import re
import tomllib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args, get_origin

from sysdock.errors import UserError, did_you_mean
from sysdock.sentences import Prose, languages, translated_keys


def parse_toml(text: str) -> dict[str, Any]:
    """The content of a text; a ValueError describes a mistake, in words that may follow `not TOML: `."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError:
        # Python's own message is for programmers: how to switch the limit off.
        raise ValueError("a number of thousands of digits") from None


def quoted(text: str) -> str:
    """A text as a TOML string: JSON's form is one too, but for the control character 127."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


@dataclass(frozen=True)
class Entries:
    """Reads the entries of one file. Each mistake is a UserError that names the file and the key.

    `hint` is that of every mistake without a hint of its own; `keys_hint` that of an unknown key to which
    no known one is similar, by default which keys there are.
    """

    path: Path | None
    hint: str | None = None
    keys_hint: str | None = None

    def wrong(self, fact: str, hint: str | None = None, *keys: str) -> UserError:
        """The error; its place is the file, or these keys in it (`rules."io/seeks".min_calls`)."""
        named = ".".join(key if key.isidentifier() else f'"{key}"' for key in keys)
        return UserError(fact, hint or self.hint, f"{self.path}: {named}" if keys else str(self.path))

    def closed(
        self, what: str, entry: Any, allowed: Iterable[str] | None, needed: Iterable[str] = ()
    ) -> dict[str, Any]:
        """A table without a key that is not `allowed` (None: any may be), and with all that are `needed`.

        An empty `what` is the file as a whole, in which the place is the key.
        """
        if not isinstance(entry, dict):
            raise self.wrong(f"{what} is not a table of keys")
        known = list(allowed) if allowed is not None else list(entry)
        for key in entry:
            if key not in known:
                hint = did_you_mean(key, known, self.keys_hint or f"the keys are {', '.join(known)}")
                fact = f"{what} has the unknown key `{key}`" if what else f"unknown key `{key}`"
                raise self.wrong(fact, hint, *([] if what else [key]))
        for key in needed:
            if key not in entry:
                raise self.wrong(f"{what or 'the file'} lacks the key `{key}`")
        return entry

    def typed(
        self, what: str, entry: Any, types: Mapping[str, Any], needed: Iterable[str] = ()
    ) -> dict[str, Any]:
        """The same of a table whose values are of these types: `str`, `int | float`, `list[str]`, ..."""
        for key, value in self.closed(what, entry, types, needed).items():
            if not _is_of(value, types[key]):
                raise self.wrong(f"{what}: `{key}` has a value of the wrong type")
        return dict(entry)

    def text(self, key: str, value: Any, *, is_prose: bool = True) -> str:
        """A text that is not empty; of prose, each run of blanks and line breaks is one blank."""
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(f"`{key}` is not text")
        return " ".join(value.split()) if is_prose else value

    def prose(self, key: str, entry: Mapping[str, Any]) -> Prose:
        """A text in the languages that it is stated in."""
        keys = zip(languages(), translated_keys(key), strict=True)
        return Prose({lang: self.text(name, entry[name]) for lang, name in keys if name in entry})

    def both(self, entry: Mapping[str, Any], key: str = "text") -> tuple[str, Prose]:
        """A text in the language of names, and in all."""
        return self.text(key, entry[key]), self.prose(key, entry)

    def texts(self, key: str, value: Any) -> tuple[str, ...]:
        """A list of texts, none of them empty."""
        if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
            raise self.wrong(f"`{key}` is not a list of texts")
        return tuple(value)

    def pattern(self, what: str, text: str) -> re.Pattern[str]:
        """A regular expression; one that Python only warns of is allowed."""
        try:
            with warnings.catch_warnings(action="ignore"):
                return re.compile(text)
        except RecursionError:
            raise self.wrong(f"{what}: `pattern` is nested too deeply") from None
        except (re.error, OverflowError) as error:
            raise self.wrong(f"{what}: `pattern` is wrong: {error}") from None

    def number(self, key: str, value: Any, least: float, most: float) -> float:
        """A number within these bounds."""
        if not _is_of(value, int | float) or not least <= value <= most:
            raise self.wrong(f"`{key}` is {value!r}", f"a number from {least:g} to {most:g}")
        return cast(float, value)

    def flag(self, key: str, value: Any) -> bool:
        """True or false."""
        if not isinstance(value, bool):
            raise self.wrong(f"`{key}` is neither true nor false")
        return value

    def one_of(self, key: str, value: Any, allowed: Sequence[str]) -> str:
        """One of some texts."""
        if value not in allowed:
            hint = did_you_mean(str(value), allowed, f"one of {', '.join(allowed)}")
            raise self.wrong(f"`{key}` is {value!r}", hint)
        return str(value)

    def tables(self, data: Mapping[str, Any], key: str) -> list[tuple[str, Any]]:
        """Tables by their names: `[key.NAME]`."""
        value = data.get(key, {})
        if not isinstance(value, dict):
            raise self.wrong(f"`{key}` is not a table", f"write [{key}.NAME]")
        return list(value.items())

    def entries(self, data: Mapping[str, Any], key: str) -> list[Any]:
        """Tables in their order: `[[key]]`."""
        value = data.get(key, [])
        if not isinstance(value, list):
            raise self.wrong(f"`{key}` is not a list of tables", f"write [[{key}]]")
        return value


def _is_of(value: Any, type_: Any) -> bool:
    origin, inner = get_origin(type_), get_args(type_)
    if origin is list:
        return isinstance(value, list) and all(_is_of(each, inner[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(_is_of(each, inner[1]) for each in value.values())
    # A truth value is a number for Python only.
    return isinstance(value, type_) and (type_ is bool or not isinstance(value, bool))
