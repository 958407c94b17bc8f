"""Reads plans of a load, `knowhow/health/<name>.toml`: steps in the fields of `crates/load/src/step.rs`.

A field that is a list of numbers, or of words, stands for a step with each of them; of several lists, for
each combination, the last one changing fastest.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sysdock.errors import UserError, did_you_mean
from sysdock.library.tables import read_toml
from sysdock.sentences import Prose, prose, prose_of, translated_keys

_TEXTS = (*translated_keys("title"), *translated_keys("text"))
_KEYS = (*_TEXTS, "within_s", "one_host", "steps")
_HINT = "docs/reference/knowhow-files.md shows what a plan holds"
# The type of each field; what a value means is checked by the generator itself.
_FIELDS: dict[str, type | tuple[type, ...]] = {
    "item": str,
    "operations": list,
    "length_bytes": int,
    "processes": int,
    "depth": int,
    "direct": bool,
    "layout": str,
    "sync": str,
    "size_bytes": int,
    "time_ns": int,
    "files": int,
    "write_share": (int, float),
    "verify": bool,
    "prefilled": bool,
}
# Fields that may be a list of values, used one after another.
_VARIED = ("length_bytes", "processes", "depth", "sync", "layout", "direct")


@dataclass(frozen=True)
class LoadPlan:
    """The steps to measure, in order, and the name of the plan."""

    # The name of its file.
    name: str
    title: str
    titles: Prose
    text: str
    texts: Prose
    steps: tuple[dict[str, Any], ...]
    # No step begins after this time.
    within_s: int | None = None
    # Several hosts do the steps of most processes on one of them, too.
    one_host: bool = False

    def content(self) -> dict[str, Any]:
        """The plan as `sysdock-native load --plan` reads it, as JSON."""
        return {"steps": list(self.steps)}


def parse_load_plan(path: Path) -> LoadPlan:
    """Reads one plan; a UserError names the file and what is wrong in it."""
    data = read_toml(path)
    for key in data:
        if key not in _KEYS:
            raise UserError(f"unknown key `{key}`", did_you_mean(key, _KEYS, _HINT), str(path))
    stated = set(_TEXTS) & {"title", "text", *data}
    texts = {key: _text(path, key, data.get(key)) for key in stated}
    within = data.get("within_s")
    if within is not None and (type(within) is not int or within <= 0):
        raise UserError("`within_s` is not a number of seconds", _HINT, str(path))
    one_host = data.get("one_host", False)
    if not isinstance(one_host, bool):
        raise UserError("`one_host` is neither true nor false", _HINT, str(path))
    steps = data.get("steps")
    if not isinstance(steps, list) or not steps:
        raise UserError("it has no steps", "write [[steps]], one for each item", str(path))
    expanded = tuple(each for step in steps for each in _expanded(path, step))
    return LoadPlan(
        name=path.stem,
        title=texts["title"],
        titles=_prose(texts, "title"),
        text=texts["text"],
        texts=_prose(texts, "text"),
        steps=expanded,
        within_s=within,
        one_host=one_host,
    )


def _prose(texts: dict[str, str], key: str) -> Prose:
    return prose_of(texts, key) or prose(texts[key])


def _text(path: Path, key: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UserError(f"`{key}` is missing, or not text", _HINT, str(path))
    return value


def _expanded(path: Path, step: Any) -> list[dict[str, Any]]:
    """The steps that one entry of the file describes."""
    if not isinstance(step, dict):
        return [_step(path, step)]
    varied = {key: value for key, value in step.items() if key in _VARIED and isinstance(value, list)}
    if any(not values for values in varied.values()):
        raise UserError("a list of a step is empty", _HINT, str(path))
    cases = itertools.product(*varied.values())
    return [_step(path, {**step, **dict(zip(varied, case, strict=True))}) for case in cases]


def _step(path: Path, step: Any) -> dict[str, Any]:
    if not isinstance(step, dict) or "item" not in step:
        raise UserError("a step lacks the key `item`", _HINT, str(path))
    for key, value in step.items():
        if key not in _FIELDS:
            raise UserError(
                f"a step has the unknown key `{key}`", did_you_mean(key, _FIELDS, _HINT), str(path)
            )
        fits = isinstance(value, _FIELDS[key])
        if not fits or (isinstance(value, bool) and _FIELDS[key] is not bool):
            raise UserError(f"`{key}` of a step is not of its type: {value!r}", _HINT, str(path))
    return step
