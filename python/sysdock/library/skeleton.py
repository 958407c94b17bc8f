"""Writes the beginnings of an analysis or a rule: two files that work as they are."""

from __future__ import annotations

import re
from pathlib import Path

from sysdock import to_disk
from sysdock.errors import UserError
from sysdock.own_files import own_root

_NAME = re.compile(r"[a-z][a-z0-9_]*(/[a-z][a-z0-9_]*)*")


def write_skeleton(kind: str, name: str, into: Path) -> tuple[Path, Path]:
    """Writes the .sql and .md file of an `analysis` or `rule` into the folder `into`; returns their paths."""
    if not _NAME.fullmatch(name):
        hint = "use small letters, digits and `_`, with the area in front: io/largest_files"
        raise UserError(f"`{name}` is not a name for know-how", hint)
    base = into / ("analyses" if kind == "analysis" else "rules")
    sql, page = base / f"{name}.sql", base / f"{name}.md"
    for path in (sql, page):
        if path.exists():
            raise UserError("already exists", "choose another name, or change that file", str(path))
    title = name.rsplit("/", 1)[-1].replace("_", " ").capitalize()
    texts = [(own_root() / "templates" / f"{kind}.{end}").read_text("utf-8") for end in ("sql", "md")]
    try:
        to_disk.make_folder(sql.parent)
        for path, text in zip((sql, page), texts, strict=True):
            to_disk.write_new(path, text.replace("{title}", title))
    except OSError as error:
        raise UserError(f"cannot be written: {error.strerror}", place=str(sql)) from None
    return sql, page
