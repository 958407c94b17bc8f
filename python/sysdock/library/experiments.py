"""Reads experiments, `knowhow/experiments/<area>/<name>.toml`: steps, and lists of parameters."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sysdock.errors import UserError, did_you_mean
from sysdock.library.tables import read_toml

Value = int | str
_KEYS = (
    "title",
    "title_ja",
    "question",
    "question_ja",
    "analysis",
    "rounds",
    "parameters",
    "steps",
)
_PARAMETER_KEYS = ("values", "text", "text_ja", "unit")
_STEP_TEXTS = ("workload", "text", "text_ja")


@dataclass(frozen=True)
class Parameter:
    """What differs from case to case, or is stated here because people will want another: its `values`."""

    name: str
    values: tuple[Value, ...]
    text: str
    text_ja: str
    unit: str | None = None


@dataclass(frozen=True)
class Step:
    """A workload by its name, with the arguments that this step gives it beside the parameters."""

    workload: str
    arguments: dict[str, Any]
    text: str
    text_ja: str


@dataclass(frozen=True)
class Experiment:
    """A question, and the steps of each case; `analysis` gives the table of results."""

    id: str
    path: Path
    title: str
    title_ja: str
    question: str
    question_ja: str
    analysis: str
    rounds: int
    parameters: tuple[Parameter, ...]
    steps: tuple[Step, ...]

    def cases(self) -> list[dict[str, Value]]:
        """Every combination of the parameters' values; the last parameter changes first."""
        names = [parameter.name for parameter in self.parameters]
        lists = (parameter.values for parameter in self.parameters)
        return [dict(zip(names, values, strict=True)) for values in itertools.product(*lists)]

    def with_values(self, name: str, texts: list[str]) -> Experiment:
        """The same with other values (as text) of a parameter; UserError where there is none of that name."""
        known = {parameter.name: parameter for parameter in self.parameters}
        if name not in known:
            hint = did_you_mean(name, known, f"the parameters are {', '.join(known)}")
            raise UserError(f"`{self.id}` has no parameter `{name}`", hint, "--set")
        of_numbers = isinstance(known[name].values[0], int)
        if wrong := [text for text in texts if of_numbers and not text.isdecimal()]:
            raise UserError(f"{name}: `{wrong[0]}` is no number", f"write `{name}=4096,16384`", "--set")
        values = tuple(int(text) if of_numbers else text for text in texts)
        changed = replace(known[name], values=values)
        return replace(self, parameters=tuple(changed if p.name == name else p for p in self.parameters))


def parse_experiment(path: Path, id_: str) -> Experiment:
    """Reads one experiment; a UserError names the file and what is wrong in it."""
    data = read_toml(path)
    _closed(path, "the experiment", data, _KEYS, _KEYS)
    rounds = data["rounds"]
    if not isinstance(rounds, int) or isinstance(rounds, bool) or rounds < 1:
        raise UserError(f"`rounds` is {rounds!r}", "a number from 1 on", str(path))
    if not isinstance(data["parameters"], dict) or not isinstance(data["steps"], list) or not data["steps"]:
        hint = "write [parameters.NAME] and [[steps]]"
        raise UserError("`parameters` or `steps` are not what they should be", hint, str(path))
    texts = {key: _text(path, key, data[key]) for key in _KEYS[:5]}
    return Experiment(
        id=id_,
        path=path,
        rounds=rounds,
        parameters=tuple(_parameter(path, name, entry) for name, entry in data["parameters"].items()),
        steps=tuple(_step(path, entry) for entry in data["steps"]),
        **texts,
    )


def _parameter(path: Path, name: str, entry: Any) -> Parameter:
    _closed(path, f"parameter {name}", entry, _PARAMETER_KEYS, _PARAMETER_KEYS[:3])
    values = entry["values"]
    kinds = {type(value) for value in values} if isinstance(values, list) else set()
    if kinds not in ({int}, {str}):
        raise UserError(f"parameter {name} has no list of numbers or of texts", "values = [4096]", str(path))
    text, text_ja = (_text(path, key, entry[key]) for key in ("text", "text_ja"))
    return Parameter(name, tuple(values), text, text_ja, entry.get("unit"))


def _step(path: Path, entry: Any) -> Step:
    _closed(path, "a step", entry, None, _STEP_TEXTS)
    texts = {key: _text(path, key, entry[key]) for key in _STEP_TEXTS}
    return Step(arguments={key: value for key, value in entry.items() if key not in texts}, **texts)


def _text(path: Path, key: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UserError(f"`{key}` is no text", place=str(path))
    return " ".join(value.split())


def _closed(
    path: Path, what: str, entry: Any, allowed: tuple[str, ...] | None, needed: tuple[str, ...]
) -> None:
    """Refuses a key that is not `allowed` (None: any may be), and the lack of one that is `needed`."""
    if not isinstance(entry, dict):
        raise UserError(f"{what} is no table of keys", place=str(path))
    for key in entry:
        if allowed is not None and key not in allowed:
            hint = did_you_mean(key, allowed, f"the keys are {', '.join(allowed)}")
            raise UserError(f"{what} has the unknown key `{key}`", hint, str(path))
    for key in needed:
        if key not in entry:
            raise UserError(f"{what} lacks the key `{key}`", place=str(path))
