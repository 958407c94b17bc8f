"""Writes scripts about dumps: one to begin with, and one of what was tried in the shell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from sysdock import to_disk
from sysdock.dump.rows import Rows
from sysdock.errors import UserError
from sysdock.own_files import own_root

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_COLUMN = re.compile(r"[a-z][a-z0-9_]*")
_NEW_COLUMNS = """\
# column:  pid INTEGER                   Process.
# column:  comm VARCHAR                  Its name.
# column:  threads BIGINT                Threads of it.
# column:  status VARCHAR                ok, or why something could not be read."""
_NEW_BODY = """\
    leaders = [task.address for task in dump.tasks() if task.pid == task.tgid]
    return dump.read("task_struct", leaders, "pid", "comm", threads="signal->nr_threads")"""


def write_new(name: str, into: Path) -> tuple[Path, Path]:
    """Writes a script that works as it is, to be changed; returns the script and its page.

    UserError: the name is none, or there are such files already.
    """
    columns = [("pid", "INTEGER"), ("comm", "VARCHAR"), ("threads", "BIGINT"), ("status", "VARCHAR")]
    return _write(
        name,
        into,
        text="One row per process. Say here, in plain words, which question it answers.",
        needs="task_struct.signal, signal_struct.nr_threads",
        columns=_NEW_COLUMNS,
        body=_NEW_BODY,
        example=(columns, ["1", "init", "1", "ok"]),
    )


def write_kept(name: str, into: Path, lines: Sequence[str], last: str, found: Rows) -> tuple[Path, Path]:
    """Writes a script of statements that were tried, whose last one gave these rows."""
    columns = [(column, _type_of(found[column])) for column in found.columns]
    wrong = next((column for column, _ in columns if not _COLUMN.fullmatch(column)), None)
    if wrong:
        raise UserError(f"`{wrong}` cannot be the name of a column", "name it: read(..., name=path)")
    body = [line for each in lines for line in each.splitlines()] + [f"return {last}"]
    first = [
        "" if value is None else _cell(value) for value in (found[0] if len(found) else [None] * len(columns))
    ]
    return _write(
        name,
        into,
        text="Kept from the shell. Say here, in plain words, which question it answers.",
        needs="types",
        columns="\n".join(f"# column:  {name} {type_:<8} Say here what it is." for name, type_ in columns),
        body="\n".join(f"    {line}" for line in body),
        example=(columns, first),
    )


def _write(
    name: str,
    into: Path,
    *,
    text: str,
    needs: str,
    columns: str,
    body: str,
    example: tuple[Sequence[tuple[str, str]], Sequence[str]],
) -> tuple[Path, Path]:
    if not _NAME.fullmatch(name):
        raise UserError(f"`{name}` is not a name for a script", "write it like `busy-workers`")
    script, page = into / "dumps" / f"{name}.py", into / "dumps" / f"{name}.md"
    for path in (script, page):
        if path.exists():
            raise UserError("already exists", "choose another name", str(path))
    title = name.replace("-", " ").capitalize()
    names = [column for column, _ in example[0]]
    to_disk.make_folder(script.parent)
    to_disk.write_new(
        script,
        _template("dump.py").format(
            title=title, text=text, needs=needs, kernels="not tried yet", columns=columns, body=body
        ),
    )
    to_disk.write_new(
        page,
        _template("dump.md").format(
            title=title,
            text=text,
            table=f"dump_{name.replace('-', '_')}",
            names=",".join(names),
            values=",".join(example[1]),
            heads=" | ".join(names),
            rule="|".join("---" for _ in names),
        ),
    )
    return script, page


def _template(name: str) -> str:
    return (own_root() / "templates" / name).read_text("utf-8")


def _type_of(values: Sequence[object]) -> str:
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, bool) for value in known):
        return "BOOLEAN"
    if known and all(isinstance(value, int) for value in known):
        return "BIGINT"
    if known and all(isinstance(value, (int, float)) for value in known):
        return "DOUBLE"
    return "VARCHAR"


def _cell(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1 << 63:
        value -= 1 << 64
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if any(letter in text for letter in ',"\n') else text
