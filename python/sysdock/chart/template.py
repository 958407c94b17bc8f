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

SHAPES = ("bars", "points", "classes", "spans", "cells", "lines", "ranges", "icicle")

_PLACEHOLDER = re.compile(r"\$([a-z][a-z0-9_]*)$")
_ABSENT = object()


def shape_of(spec: dict[str, Any], place: str) -> tuple[str, int]:
    """How the data of a template is prepared, and how many marks it draws at most (its `usermeta`)."""
    stated = spec.get("usermeta", {})
    shape, limit = stated.get("shape"), stated.get("limit")
    if shape not in SHAPES:
        raise UserError(f"shape `{shape}` is unknown", f"usermeta.shape is one of {', '.join(SHAPES)}", place)
    if not isinstance(limit, int) or not 0 < limit <= 5000:
        raise UserError("usermeta.limit is not a number of marks from 1 to 5000", place=place)
    return shape, limit


def fill(template: Any, values: dict[str, Any]) -> Any:
    """The template with its placeholders replaced, `usermeta` left out."""
    filled = _fill(template, values)
    filled.pop("usermeta", None)
    return filled


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
