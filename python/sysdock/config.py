"""Settings of the user: `~/.config/sysdock.toml` (docs/reference/config.md).

An option of the command line goes before the environment, and that before the file.
"""

from __future__ import annotations

import functools
import os
import pwd
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sysdock.entries import Entries, parse_toml
from sysdock.errors import UserError, did_you_mean
from sysdock.recording.caller import caller, with_rights_of_caller
from sysdock.sentences import languages

if TYPE_CHECKING:
    from sysdock.library import Library

RECORDERS = ("auto", "kernel", "strace")
# Another file; with an empty value none is read.
FILE = "SYSDOCK_CONFIG"
_KEYS = ("language", "recorder", "rules")
_HINT = "docs/reference/config.md has all keys"
_MOST_BYTES = 1 << 20

Limits = dict[str, dict[str, str]]


@dataclass(frozen=True)
class Config:
    """The contents of the file. `rules`: values of parameters by id of the rule."""

    path: Path | None = None
    language: str | None = None
    recorder: str | None = None
    rules: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def limits(self, library: Library) -> Limits:
        """Values of parameters by id of the rule. UserError: a rule or a parameter is unknown."""
        read = Entries(self.path)
        found: Limits = {}
        for id_, values in self.rules.items():
            try:
                rule = library.rule(id_)
            except UserError as error:
                raise read.wrong(error.fact, error.hint, "rules", id_) from None
            known = [param.name for param in rule.params]
            for name in values:
                if name not in known:
                    otherwise = f"its parameters are {', '.join(known)}" if known else "it has no parameters"
                    fact = f"`{rule.id}` has no parameter `{name}`"
                    raise read.wrong(fact, did_you_mean(name, known, otherwise), "rules", id_, name)
            found[rule.id] = {name: str(value) for name, value in values.items()}
        return found


def language() -> str:
    """`SYSDOCK_LANGUAGE`, else what the file says, else the language of the locale, else `en`."""
    if stated := _stated("SYSDOCK_LANGUAGE", languages()) or config().language:
        return stated
    locale = os.environ.get("LC_ALL") or os.environ.get("LANG") or ""
    known = languages()
    return next((lang for lang in known if locale.split("_")[0].split(".")[0] == lang), known[0])


def recorder() -> str:
    """`SYSDOCK_RECORDER`, else what the file says, else `auto`."""
    return _stated("SYSDOCK_RECORDER", RECORDERS) or config().recorder or "auto"


def _stated(variable: str, known: Sequence[str]) -> str | None:
    """The value of a variable of the environment; None if it is not set."""
    value = os.environ.get(variable)
    if value and value not in known:
        raise UserError(f"`{value}` is not one of {', '.join(known)}", None, variable)
    return value or None


@functools.cache
def config() -> Config:
    """The user's file; empty if there is none."""
    path = _path()
    if path is None:
        return Config()
    # Under sudo it is the file of who called sudo: it is read with the rights of that user.
    try:
        with with_rights_of_caller():
            if not path.is_file():
                return Config()
            with open(path, "rb") as file:
                content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", None, str(path)) from None
    if len(content) > _MOST_BYTES:
        raise UserError("is larger than 1 MiB", _HINT, str(path))
    return _checked(path, _parsed(path, content))


def _path() -> Path | None:
    """The file; None where no place for it is known."""
    if (stated := os.environ.get(FILE)) is not None:
        return Path(stated) if stated else None
    # A path that is not absolute is ignored (XDG Base Directory Specification).
    if (folder := os.environ.get("XDG_CONFIG_HOME", "")).startswith("/"):
        return Path(folder) / "sysdock.toml"
    if who := caller():
        with suppress(KeyError):
            return Path(pwd.getpwuid(who.uid).pw_dir) / ".config" / "sysdock.toml"
    with suppress(RuntimeError):
        return Path.home() / ".config" / "sysdock.toml"
    return None


def _parsed(path: Path, content: bytes) -> dict[str, Any]:
    try:
        return parse_toml(content.decode("utf-8"))
    except ValueError as error:
        raise UserError(f"not TOML: {error}", _HINT, str(path)) from None


def _checked(path: Path, content: dict[str, Any]) -> Config:
    """UserError: a key is unknown, or its value is not of its kind."""
    read = Entries(path, keys_hint=_HINT)
    read.closed("", content, _KEYS)
    for key, known in (("language", languages()), ("recorder", RECORDERS)):
        if key in content and content[key] not in known:
            raise read.wrong(f"must be one of {', '.join(known)}", f'{key} = "{known[0]}"', key)
    rules = content.get("rules", {})
    if not isinstance(rules, dict):
        raise read.wrong("must be a table", '[rules."io/small_requests"]', "rules")
    for id_, values in rules.items():
        if not isinstance(values, dict):
            hint = f'[rules."{id_}"], and below it a line for each parameter'
            raise read.wrong("must be a table of parameters", hint, "rules", id_)
        for name, value in values.items():
            if isinstance(value, bool) or not isinstance(value, int | float | str):
                fact = "must be a number or a string"
                raise read.wrong(fact, f"{name} = 100", "rules", id_, name)
    return Config(path, content.get("language"), content.get("recorder"), rules)
