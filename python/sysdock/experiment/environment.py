"""The environment of an experiment: every field is a value, or the fact why it has none."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from sysdock.experiment.tools import find_tool
from sysdock.library.environment import EnvironmentField, EnvironmentSection
from sysdock.sentences import Fact, fact, fact_from_json, facts_from_json, json_of

# The subject of facts about fields without a value.
_SUBJECT = "environment"
_LONGEST = 2000
_TIMEOUT_S = 20
# Words on the kernel's command line that may be secret.
_SECRET = re.compile(r"(?i)((?:\S*(?:pass|token|secret|key)\S*)=)\S+")
Row = tuple[str, str, str | None, str]
# Codes of fields that should have a value.
_UNREADABLE = {
    f"{_SUBJECT}/{name}"
    for name in (
        "no_file",
        "error",
        "does_not_say",
        "empty",
        "none_of",
        "not_installed",
        "no_end_within",
        "program_failed",
        "not_installed_then",
    )
}


class _Unreadable(Exception):
    """A field cannot be read; `why` says why."""

    def __init__(self, name: str, **values: object) -> None:
        super().__init__(name)
        self.why = fact(f"{_SUBJECT}/{name}", **values)


@dataclass(frozen=True)
class Difference:
    """A field that differs between two machines, or from its default. None: there is no such field."""

    section: str
    name: str
    here: str | None
    there: str | None


def capture(sections: Iterable[EnvironmentSection], place: Path) -> list[Row]:
    """Rows of `environment`: section, name, value, source. `place`: where the experiment measures."""
    names = {"place": str(place), "kernel": platform.release(), "python": sys.executable}
    return [
        (section.id, name, value, source)
        for section in sections
        for field in section.fields
        for name, value, source in _read(field, names)
    ]


def _read(field: EnvironmentField, names: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    if field.each:
        before, after = field.each.split("*")
        for path in sorted(Path("/").glob(field.each.lstrip("/"))):
            matched = str(path)[len(before) : len(str(path)) - len(after)]
            if not any(fnmatchcase(matched, pattern) for pattern in field.except_):
                yield field.name.replace("{1}", matched), _guarded(field, [str(path)], names), str(path)
        return
    source = " ".join(_words(field, names)) or field.file or field.hash[0]
    yield field.name, _guarded(field, [field.file] if field.file else [], names), source


def _words(field: EnvironmentField, names: Mapping[str, str]) -> list[str]:
    return [_filled(word, names) for word in field.command]


def _filled(text: str, names: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: names.get(match[1], match[0]), text)


def _guarded(field: EnvironmentField, paths: Sequence[str], names: Mapping[str, str]) -> str:
    try:
        text = _text(field, paths, names)
    except FileNotFoundError as error:
        return _stated(field.absent) or _without(fact(f"{_SUBJECT}/no_file", file=str(error.filename)))
    except OSError as error:
        # Answers of some drivers for a value that the device does not have.
        why = fact(f"{_SUBJECT}/error", error=(error.strerror or str(error)).lower())
        return _stated(field.absent) or _without(why)
    except _Unreadable as error:
        return _without(error.why)
    return _stated(text) if text in (field.unmatched, field.fails_as) else _with_unit(field, text)


def _stated(value: str | None) -> str:
    """The statement of a file of `knowhow/environment` in place of a value: a value, or a fact."""
    return _without(fact(value)) if value and value.startswith(f"{_SUBJECT}/") else value or ""


def _without(why: Fact) -> str:
    return json_of(why) or ""


def has_value(value: str | None) -> bool:
    """Whether a field was read, and is no fact about why not."""
    return isinstance(facts_from_json(value or ""), str)


def is_unreadable(value: str | None) -> bool:
    """Whether a field should have a value, and could not be read."""
    found = fact_from_json(value)
    return found is not None and found.code in _UNREADABLE


def _text(field: EnvironmentField, paths: Sequence[str], names: Mapping[str, str]) -> str:
    if field.hash:
        return _hash_of(field, names)
    if field.command:
        text = _printed(field, _words(field, names))
    else:
        text = Path(paths[0]).read_text(errors="replace")
    if field.is_hashed:
        return hashlib.sha256(text.encode()).hexdigest()
    if field.choice:
        chosen = re.search(r"\[([^\]]+)\]", text)
        return chosen[1] if chosen else text.strip()
    if field.pattern:
        matches = [
            " ".join(part.strip() for part in match.groups())
            for match in re.finditer(field.pattern, text, re.MULTILINE)
        ]
        text = "; ".join(sorted(dict.fromkeys(matches)))
        if not text:
            if field.unmatched is None:
                raise _Unreadable("does_not_say")
            return field.unmatched
    text = _SECRET.sub(r"\1...", "; ".join(" ".join(line.split()) for line in text.strip().splitlines()))
    if not text:
        raise _Unreadable("empty")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _with_unit(field: EnvironmentField, text: str) -> str:
    return f"{text} {field.unit}" if field.unit and text != field.absent else text


def _hash_of(field: EnvironmentField, names: Mapping[str, str]) -> str:
    for place in field.hash:
        path = Path(_filled(place, names))
        if path.is_file():
            return hashlib.sha256(path.read_bytes()).hexdigest()
    raise _Unreadable("none_of", files=", ".join(_filled(place, names) for place in field.hash))


def _printed(field: EnvironmentField, words: Sequence[str]) -> str:
    if find_tool(words[0]) is None:
        raise _Unreadable("not_installed", program=words[0])
    try:
        done = subprocess.run(
            [find_tool(words[0]) or words[0], *words[1:]],
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _Unreadable("no_end_within", program=words[0], seconds=_TIMEOUT_S) from None
    if done.returncode:
        if field.fails_as:
            return field.fails_as
        output = (done.stderr.strip() or done.stdout.strip()).splitlines()
        message = output[-1] if output else f"exit status {done.returncode}"
        raise _Unreadable("program_failed", program=words[0], message=message)
    return done.stdout


def programs_used(words: Iterable[str]) -> list[Row]:
    """The package version and the SHA-256 of each program, given by name or path."""
    found: list[Row] = []
    for word in sorted(set(words)):
        path = find_tool(word)
        if path is None:
            found.append(("program", word, _without(fact(f"{_SUBJECT}/not_installed_then")), "PATH"))
            continue
        real = Path(path).resolve()
        digest = hashlib.sha256(real.read_bytes()).hexdigest()
        found.append(("program", word, f"{_package_once(path, real, digest)}; SHA-256 {digest}", str(real)))
    return found


@functools.cache
def _package_once(path: str, real: Path, _digest: str) -> str:
    """The package of a program, asked for once as long as its contents are the same."""
    return _package(path, real)


def _package(path: str, real: Path) -> str:
    """Name and version of the package that has it, as dpkg or rpm says."""
    if shutil.which("dpkg-query"):
        # It reads the lists of all packages, and fails if any of the names is in none.
        lines = _run("dpkg-query", "-S", str(real), path, str(real).removeprefix("/usr")).stdout.splitlines()
        owners = [line for line in lines if not line.startswith("diversion ")]
        if not owners:
            return "no package"
        name = owners[0].split(":")[0].split(",")[0]
        return f"{name} {_answer('dpkg-query', '-W', '-f', '${Version}', name)}"
    if shutil.which("rpm"):
        return _answer("rpm", "-qf", "--qf", "%{NAME} %{VERSION}-%{RELEASE}", str(real)) or "no package"
    return "package not known, as there is neither dpkg nor rpm"


def _answer(*words: str) -> str:
    """Output of a program; empty if it fails."""
    done = _run(*words)
    return "" if done.returncode else done.stdout


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False)


def from_default(sections: Iterable[EnvironmentSection], rows: Iterable[Row]) -> list[Difference]:
    """Fields that differ from what they are on an untuned machine (`there`)."""
    values = {(section, name): value or "" for section, name, value, _ in rows}
    found = []
    for section, field in _fields(sections):
        for key in _keys_of(section, field, values) if field.default else ():
            value, usual = values[key], _with_unit(field, field.default or "")
            if has_value(value) and value.split() != usual.split():
                found.append(Difference(*key, value, usual))
    return found


def between(
    sections: Iterable[EnvironmentSection], here: Iterable[Row], there: Iterable[Row]
) -> list[Difference]:
    """Fields on which results may depend and that differ; programs are among them."""
    ours = {(section, name): value for section, name, value, _ in here}
    theirs = {(section, name): value for section, name, value, _ in there}
    both = {**ours, **theirs}
    wanted = [key for key in both if key[0] == "program"]
    for section, field in _fields(sections):
        wanted += _keys_of(section, field, both) if field.defines else []
    return [
        Difference(*key, ours.get(key), theirs.get(key))
        for key in dict.fromkeys(wanted)
        if ours.get(key) != theirs.get(key)
    ]


def _fields(sections: Iterable[EnvironmentSection]) -> Iterator[tuple[str, EnvironmentField]]:
    for section in sections:
        for field in section.fields:
            yield section.id, field


def _keys_of(section: str, field: EnvironmentField, keys: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Section and name of the rows that a field made."""
    pattern = re.escape(field.name).replace(re.escape("{1}"), ".+")
    return [key for key in keys if key[0] == section and re.fullmatch(pattern, key[1])]
