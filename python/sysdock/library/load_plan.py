"""Reads plans of a load, `knowhow/health/<name>.toml`: steps in the fields of `crates/load/src/step.rs`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sysdock.errors import UserError, did_you_mean
from sysdock.library.tables import read_toml

_KEYS = ("title", "title_ja", "text", "text_ja", "steps")
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
}


@dataclass(frozen=True)
class LoadPlan:
    """What is measured, one step after the other, and what it is called in both languages."""

    title: str
    title_ja: str
    text: str
    text_ja: str
    steps: tuple[dict[str, Any], ...]

    def content(self) -> dict[str, Any]:
        """The plan as `sysdock-native load --plan` reads it, as JSON."""
        return {"steps": list(self.steps)}


def parse_load_plan(path: Path) -> LoadPlan:
    """Reads one plan; a UserError names the file and what is wrong in it."""
    data = read_toml(path)
    for key in data:
        if key not in _KEYS:
            raise UserError(f"unknown key `{key}`", did_you_mean(key, _KEYS, _HINT), str(path))
    texts = {key: _text(path, key, data.get(key)) for key in _KEYS[:-1]}
    steps = data.get("steps")
    if not isinstance(steps, list) or not steps:
        raise UserError("it has no steps", "write [[steps]], one for each item", str(path))
    return LoadPlan(steps=tuple(_step(path, step) for step in steps), **texts)


def _text(path: Path, key: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UserError(f"`{key}` is missing, or no text", _HINT, str(path))
    return value


def _step(path: Path, step: Any) -> dict[str, Any]:
    if not isinstance(step, dict) or "item" not in step:
        raise UserError("a step lacks the key `item`", _HINT, str(path))
    for key, value in step.items():
        if key not in _FIELDS:
            raise UserError(f"a step has the unknown key `{key}`", did_you_mean(key, _FIELDS, _HINT), str(path))
        fits = isinstance(value, _FIELDS[key])
        if not fits or (isinstance(value, bool) and _FIELDS[key] is not bool):
            raise UserError(f"`{key}` of a step is not of its type: {value!r}", _HINT, str(path))
    return step
