"""Fills chart templates, `knowhow/charts/<name>.json`.

A string such as `"$x"` is replaced by the value of that name, which may be any JSON value. A channel (an
object with a `field`) whose field has no value is left out, and so is any member whose whole value is a
placeholder without one. Values come from the headers of know-how files, except names of series, which stand
in a list of plain values (`scale.domain`). Nothing else that was recorded enters a specification other than
as data, because Vega takes many of its strings for expressions.
"""

from __future__ import annotations

import re
from typing import Any

from sysdock.errors import UserError

SHAPES = (
    "bars",
    "points",
    "classes",
    "spans",
    "cells",
    "lines",
    "ranges",
    "icicle",
    "flame",
    "states",
    "latencies",
)

_PLACEHOLDER = re.compile(r"\$([a-z][a-z0-9_]*)$")
_ABSENT = object()
# Keys of Vega-Lite below which something is loaded or linked to, and texts that name a place to load from.
_LOADING_KEYS = {"url", "href", "data", "datasets", "loader", "baseurl", "bind"}
_OUTSIDE = re.compile(r"\b(https?|ftp|file|data|blob|wss?|javascript):\S|^\s*//|url\s*\(", re.I)
_NOTHING_LOADED = "a template draws the rows of its analysis: no `data`, `url`, `href`, and no images"
_MOST_DEPTH = 50


def shape_of(spec: dict[str, Any], place: str) -> tuple[str, int]:
    """How the data of a template are prepared, and how many marks it draws at most (its `usermeta`)."""
    stated = spec.get("usermeta")
    stated = stated if isinstance(stated, dict) else {}
    shape, limit = stated.get("shape"), stated.get("limit")
    if shape not in SHAPES:
        raise UserError(f"shape `{shape}` is unknown", f"usermeta.shape is one of {', '.join(SHAPES)}", place)
    if not isinstance(limit, int) or not 0 < limit <= 5000:
        raise UserError("usermeta.limit is not a number of marks from 1 to 5000", place=place)
    return shape, limit


def fill(template: dict[str, Any], values: dict[str, Any], place: str) -> dict[str, Any]:
    """The template with its placeholders replaced, `usermeta` left out.

    UserError: it would load something, whether a file, a page or a picture; all data come from the recording.
    """
    _refuse_outside(template, place, _OUTSIDE)
    filled: dict[str, Any] = _fill(template, values)
    if filled is _ABSENT:
        raise UserError("the template itself has a `field`", "a channel of `encoding` has one", place)
    # Once more: a placeholder may have become the name of a mark. Names of series may look like anything.
    _refuse_outside(filled, place, None)
    filled.pop("usermeta", None)
    return filled


def _refuse_outside(template: dict[str, Any], place: str, outside: re.Pattern[str] | None) -> None:
    """Checks one level of nesting after the other: a stranger's template may be deeper than the stack."""
    level: list[tuple[str, Any]] = [(key, value) for key, value in template.items() if key != "$schema"]
    for _ in range(_MOST_DEPTH):
        for key, value in level:
            if key.lower() in _LOADING_KEYS or (outside and isinstance(value, str) and outside.search(value)):
                shown = f"{key}: {value}" if isinstance(value, str) else key
                raise UserError(f"`{shown[:80]}` would load something", _NOTHING_LOADED, place)
            if key in ("mark", "type") and value == "image":
                raise UserError("a mark of type `image` would load something", _NOTHING_LOADED, place)
        objects = [pair for _, value in level if isinstance(value, dict) for pair in value.items()]
        level = objects + [(key, each) for key, value in level if isinstance(value, list) for each in value]
        if not level:
            return
    raise UserError("nested too deeply", place=place)


def _fill(node: Any, values: dict[str, Any]) -> Any:
    if isinstance(node, str):
        match = _PLACEHOLDER.match(node)
        if not match:
            return node
        value = values.get(match.group(1))
        return _ABSENT if value is None else value
    if isinstance(node, list):
        items = [_fill(item, values) for item in node]
        return [item for item in items if item is not _ABSENT]
    if not isinstance(node, dict):
        return node
    filled = {key: _fill(value, values) for key, value in node.items()}
    if filled.get("field") is _ABSENT:
        return _ABSENT
    return {key: value for key, value in filled.items() if value is not _ABSENT}
