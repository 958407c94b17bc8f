"""Names of columns for people, in headings, titles of axes and legends; and their descriptions."""

from __future__ import annotations

import re

from sysdock.library.rule_shape import Column
from sysdock.sentences import Prose, catalogue, is_source, languages, say

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
    """The short name of a column, without its unit: that of its header, or the common one."""
    head = column.head
    stated = head.texts.get(lang) if isinstance(head, Prose) else say(head, lang)
    return stated or named(column.name, lang)


def axis(column: Column, lang: str) -> str:
    """The title of a column's axis: the first clause of its description, if it has one in `lang`."""
    return column.text.rstrip(".").split(";")[0] if is_source(lang) else heading(column, lang)


def table_heading(column: Column, lang: str) -> str:
    """The heading of a column in a table for reading, without its unit: `Average`, `CPU wait`."""
    if not is_source(lang):
        return heading(column, lang)
    words = " ".join(_FULL.get(word, word) for word in plain(column.name).split())
    return words if _PERCENTILE.match(words) else words[:1].upper() + words[1:]


def description(column: Column, lang: str) -> str:
    """The description of a column: that of its header, or the common text, otherwise its heading."""
    if is_source(lang):
        return column.text
    stated = column.means.texts.get(lang) if column.means else None
    return stated or catalogue().dictionary("descriptions", lang).get(column.text) or heading(column, lang)


def plain(name: str) -> str:
    """A name of a column in words, without the unit of a time."""
    return re.sub(r"_(ns|s)$", "", name).replace("_", " ")


def words_of(name: str) -> Prose:
    """Names of columns of that name, in every language."""
    return Prose({lang: named(name, lang) for lang in languages()})


def named(name: str, lang: str) -> str:
    """The name of columns of that name; the column's own name in words if the language has none."""
    return catalogue().dictionary("columns", lang).get(name) or plain(name)
