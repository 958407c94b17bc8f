"""SQL that makes texts harmless in CSV, as `sysdock.text.spreadsheet_text` does: for results of any size."""

from __future__ import annotations

from collections.abc import Iterable

from sysdock.text import FORMULA_STARTS, STEERING

_STEERING = "[" + "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in STEERING) + "]"
_FORMULA = "^[" + "".join(rf"\x{{{ord(char):x}}}" for char in FORMULA_STARTS) + "]"
_ESCAPED = rf"""CASE WHEN NOT regexp_matches(c, '{_STEERING}') THEN c WHEN c = chr(10) THEN '\n'
    WHEN c = chr(13) THEN '\r' WHEN c = chr(9) THEN '\t'
    WHEN unicode(c) < 65536 THEN format('\u{{:04x}}', unicode(c)) ELSE format('\U{{:08x}}', unicode(c)) END"""


def harmless(select: str, texts: Iterable[str]) -> str:
    """`select` with these of its columns, texts, made harmless. Other texts are not touched, nor slowed."""
    replaced = ", ".join(f"{_cell(_quoted(name))} AS {_quoted(name)}" for name in texts)
    return f"SELECT * REPLACE ({replaced}) FROM (\n{select}\n) AS harmless" if replaced else select


def _cell(name: str) -> str:
    letters = f"regexp_extract_all({name}, '(?s).')"
    visible = f"array_to_string(list_transform({letters}, lambda c: {_ESCAPED}), '')"
    quote = f"CASE WHEN regexp_matches({name}, '{_FORMULA}') THEN chr(39) ELSE '' END"
    odd = f"regexp_matches({name}, '{_FORMULA}|{_STEERING}')"
    return f"CASE WHEN {odd} THEN concat({quote}, {visible}) ELSE {name} END"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
