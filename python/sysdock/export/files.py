"""Writes an export to a file in one step, packed where its name says so, or to standard output."""

from __future__ import annotations

import functools
import gzip
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, cast

from sysdock import to_disk
from sysdock.analysis import Session
from sysdock.errors import UserError
from sysdock.export import steps
from sysdock.export.callgrind import NEEDS, write_callgrind
from sysdock.export.firefox import write_firefox
from sysdock.export.profiles import FLAMES, write_collapsed, write_speedscope
from sysdock.export.traces import Written, write_chrome, write_perfetto

Writer = Callable[[Session, IO[bytes], int], Written]
FLAME_WRITERS = {"speedscope": write_speedscope, "collapsed": write_collapsed}
WRITERS: dict[str, Writer] = {
    "perfetto": write_perfetto,
    "chrome": write_chrome,
    "firefox": write_firefox,
    "callgrind": write_callgrind,
    **FLAME_WRITERS,
}
# Writers for recordings with calls of functions in place of system calls.
_STEP_WRITERS: dict[str, Writer] = {
    "perfetto": steps.write_perfetto_steps,
    "chrome": steps.write_chrome_steps,
}
# Tables that rows of calls refer to; tables of another kind need no others.
_OF_CALLS = ("paths", "processes", "commands")


def tables_needed(session: Session, format_: str, of: str) -> tuple[str, ...]:
    """Which tables of the recording a format needs; `of` as in `write_file`."""
    if format_ == "callgrind":
        return NEEDS
    if _is_of_steps(session, format_):
        return steps.NEEDS
    return FLAMES[of].needs if of == "steps" else (*FLAMES[of].needs, *_OF_CALLS)


def _is_of_steps(session: Session, format_: str) -> bool:
    available = session.views.available
    return format_ in _STEP_WRITERS and steps.NEEDS[0] in available and "calls" not in available


def write_file(session: Session, format_: str, path: Path, most: int, of: str = "calls") -> Written:
    """Writes the recording to `path` in a format of `WRITERS`, at most `most` calls or stacks.

    `of`: what a flame graph is of, a key of `FLAMES`. A file of that name is replaced when the new one is
    complete. UserError: no such format, no such tables, or it cannot be written.
    """
    if format_ not in WRITERS:
        raise UserError(f"there is no format `{format_}`", f"the formats are {', '.join(WRITERS)}", "--to")
    if format_ == "callgrind" or of == "steps":
        hint = "sysdock itrace records instructions"
    else:
        hint = "the kernel recorder records it: sysdock run --with kernel -- CMD" if of != "calls" else ""
    needed = tables_needed(session, format_, of)
    missing = [name for name in needed if name not in session.views.available]
    if missing:
        raise UserError(
            f"the recording has no table {missing[0]}", hint or None, str(session.recording.folder)
        )
    writer = (_STEP_WRITERS if _is_of_steps(session, format_) else WRITERS)[format_]
    if of != "calls":
        if format_ not in FLAME_WRITERS:
            hint = f"{' and '.join(FLAME_WRITERS)} have them"
            raise UserError(f"{format_} has no flame graph of {of}", hint, "--of")
        writer = functools.partial(FLAME_WRITERS[format_], of=of)
    if str(path) == "-":
        return writer(session, sys.stdout.buffer, most)
    # A link is followed; what is no plain file (a device, a pipe) is written to, never replaced.
    path = path.resolve()
    if path.exists() and not path.is_file():
        return _written(writer, session, path, most)
    try:
        with to_disk.replacing(path, name=f".{path.name}.part") as file:
            return _packed(writer, session, file, path, most)
    except OSError as error:
        raise _unwritten(path, error) from None


def _written(writer: Writer, session: Session, path: Path, most: int) -> Written:
    """Writes to what is no plain file."""
    try:
        with open(path, "wb") as file:
            return _packed(writer, session, file, path, most)
    except OSError as error:
        raise _unwritten(path, error) from None


def _unwritten(path: Path, error: OSError) -> UserError:
    return UserError(f"cannot be written: {error.strerror}", place=str(path))


def _packed(writer: Writer, session: Session, file: IO[bytes], named: Path, most: int) -> Written:
    """Writes into a file, packed where it is `named` so."""
    if named.suffix != ".gz":
        return writer(session, file, most)
    # Without a name and a time in it, the same recording gives the same bytes.
    with gzip.GzipFile("", "wb", 6, file, mtime=0) as out:
        # It lacks only methods of IO that no writer uses.
        return writer(session, cast(IO[bytes], out), most)
