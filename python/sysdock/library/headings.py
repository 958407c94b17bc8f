"""What columns are called where people read them, in both languages: headings, titles of axes, legends."""

from __future__ import annotations

import functools
import re
import tomllib

from sysdock.library.catalog import own_root
from sysdock.library.rule_shape import Column

_FILE = "headings/ja.toml"


def heading(column: Column, lang: str) -> str:
    """The short name of a column, without its unit; in Japanese that of its header, or the common one."""
    return (column.ja or japanese(column.name)) if lang == "ja" else plain(column.name)


def axis(column: Column, lang: str) -> str:
    """What the axis of a column is called: in English the first clause of its description."""
    return heading(column, lang) if lang == "ja" else column.text.rstrip(".").split(";")[0]


def plain(name: str) -> str:
    """A name of a column in words, without the unit of a time."""
    return re.sub(r"_(ns|s)$", "", name).replace("_", " ")


def japanese(name: str) -> str:
    """What columns of that name are called in Japanese; the name in words where that has none."""
    return _japanese().get(name) or plain(name)


@functools.cache
def _japanese() -> dict[str, str]:
    headings: dict[str, str] = tomllib.loads((own_root() / _FILE).read_text("utf-8"))
    return headings
