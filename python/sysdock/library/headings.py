"""What columns are called where people read them, in both languages: headings, titles of axes, legends.

And what they mean: the descriptions that a report shows over a heading.
"""

from __future__ import annotations

import functools
import re
import tomllib

from sysdock.library.catalog import own_root
from sysdock.library.rule_shape import Column

_COLUMNS, _VALUES = "headings/ja.toml", "headings/values.ja.toml"
_DESCRIPTIONS, _NOTES = "headings/descriptions.ja.toml", "headings/notes.ja.toml"
# A pattern with two variable parts takes the square of the length, and a recording may be a stranger's.
_LONGEST_NOTE = 500
# Parts of names of columns, as people write them.
_FULL = {
    "avg": "average",
    "cpu": "CPU",
    "fs": "file system",
    "id": "ID",
    "io": "I/O",
    "irq": "IRQ",
    "max": "maximum",
    "min": "minimum",
    "pid": "PID",
    "ppid": "parent PID",
    "tid": "TID",
    "tps": "transactions/s",
}
_PERCENTILE = re.compile(r"p\d+")


def heading(column: Column, lang: str) -> str:
    """The short name of a column, without its unit; in Japanese that of its header, or the common one."""
    return (column.ja or japanese(column.name)) if lang == "ja" else plain(column.name)


def axis(column: Column, lang: str) -> str:
    """What the axis of a column is called: in English the first clause of its description."""
    return heading(column, lang) if lang == "ja" else column.text.rstrip(".").split(";")[0]


def table_heading(column: Column, lang: str) -> str:
    """The heading of a column in a table for reading, without its unit: `Average`, `CPU wait`."""
    if lang == "ja":
        return heading(column, lang)
    words = " ".join(_FULL.get(word, word) for word in plain(column.name).split())
    return words if _PERCENTILE.match(words) else words[:1].upper() + words[1:]


def description(column: Column, lang: str) -> str:
    """What a column means; in Japanese as its header says or the common text, else at least its heading."""
    if lang != "ja":
        return column.text
    return column.text_ja or _dictionary(_DESCRIPTIONS).get(column.text) or heading(column, lang)


def plain(name: str) -> str:
    """A name of a column in words, without the unit of a time."""
    return re.sub(r"_(ns|s)$", "", name).replace("_", " ")


def japanese(name: str) -> str:
    """What columns of that name are called in Japanese; the name in words where that has none."""
    return _dictionary(_COLUMNS).get(name) or plain(name)


def part(words: str, lang: str) -> str:
    """A part of a whole as an analysis names it (`waiting: disk`); as it is where there is no translation."""
    if lang != "ja":
        return words
    known = _dictionary(_VALUES)
    return known.get(words) or ": ".join(known.get(each, each) for each in words.split(": "))


def japanese_value(value: str) -> str:
    """The Japanese for a value that an analysis or recorder chose itself: `lock`, `read (lock)`, a note.

    Recorded names in it, what is not known, and what is longer than any note stay as they are. Semicolons
    separate several notes.
    """
    if not value or len(value) > _LONGEST_NOTE:
        return value
    return "。".join(_one_value(each) for each in value.split("; "))


def _one_value(value: str) -> str:
    known = _dictionary(_VALUES)
    if value in known:
        return known[value]
    for pattern, japanese_text in _notes():
        if found := pattern.fullmatch(value):
            parts = [japanese_value(group) for group in found.groups()]
            return japanese_text.format(*parts)
    name, opened, inner = value.removesuffix(")").partition(" (")
    if opened and value.endswith(")"):
        return f"{part(name, 'ja')} ({part(inner, 'ja')})"
    return part(value, "ja")


@functools.cache
def _notes() -> list[tuple[re.Pattern[str], str]]:
    """What notes look like, and their Japanese with a place for each variable part."""
    return [
        (re.compile(re.escape(english).replace(r"\*", "(.+)")), japanese_text.replace("*", "{}"))
        for english, japanese_text in _dictionary(_NOTES).items()
    ]


@functools.cache
def _dictionary(file: str) -> dict[str, str]:
    words: dict[str, str] = tomllib.loads((own_root() / file).read_text("utf-8"))
    return words
