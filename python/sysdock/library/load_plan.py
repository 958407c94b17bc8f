"""Reads plans of a load, `knowhow/health/<name>.toml`: steps in the fields of `crates/load/src/step.rs`.

A field that is a list of numbers, or of words, stands for a step with each of them; of several lists, for
each combination, the last one changing fastest.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sysdock.entries import Entries
from sysdock.library.tables import read_toml
from sysdock.sentences import Prose, translated_keys

_KEYS = (*translated_keys("title"), *translated_keys("text"), "within_s", "one_host", "steps")
_HINT = "docs/reference/knowhow-files.md shows what a plan holds"
# The type of each field; what a value means is checked by the generator itself.
_FIELDS = {
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
    "write_share": int | float,
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
    read = Entries(path, _HINT, _HINT)
    data = read.closed("the plan", read_toml(path), _KEYS, ("title", "text"))
    within = data.get("within_s")
    if within is not None and (type(within) is not int or within <= 0):
        raise read.wrong("`within_s` is not a number of seconds")
    steps = data.get("steps")
    if not isinstance(steps, list) or not steps:
        raise read.wrong("it has no steps", "write [[steps]], one for each item")
    title, titles = read.both(data, "title")
    text, texts = read.both(data)
    return LoadPlan(
        name=path.stem,
        title=title,
        titles=titles,
        text=text,
        texts=texts,
        steps=tuple(each for step in steps for each in _expanded(read, step)),
        within_s=within,
        one_host=read.flag("one_host", data.get("one_host", False)),
    )


def _expanded(read: Entries, step: Any) -> list[dict[str, Any]]:
    """The steps that one entry of the file describes."""
    read.closed("a step", step, None)
    varied = {key: value for key, value in step.items() if key in _VARIED and isinstance(value, list)}
    if any(not values for values in varied.values()):
        raise read.wrong("a list of a step is empty")
    cases = itertools.product(*varied.values())
    combined = ({**step, **dict(zip(varied, case, strict=True))} for case in cases)
    return [read.typed("a step", each, _FIELDS, ("item",)) for each in combined]
