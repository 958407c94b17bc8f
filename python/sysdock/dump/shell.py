"""A Python shell on a dump: `%NAME` asks a question, `%keep NAME` makes a script of what was tried."""

from __future__ import annotations

import ast
import code
import os
import re
import readline
import rlcompleter
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from sysdock.dump.dump import Dump
from sysdock.dump.rows import Rows
from sysdock.dump.running import bound, missing, refuse_untrusted
from sysdock.dump.skeleton import write_kept
from sysdock.errors import UserError
from sysdock.library import DumpScript, Library
from sysdock.library.dump_scripts import compile_script

# Frequent methods of the dump that may be called by their name alone.
_SHORT = (
    *("tasks", "stacks", "locks", "log", "cpus", "memory", "slab", "files", "mounts", "modules"),
    *("panic", "requests", "sockets"),
    *("read", "symbol", "function", "search", "walk", "tree", "xarray", "text"),
)
_BANNER = """\
{dump}
Names: dump, {short}.
%list lists the questions, %NAME asks one, %keep NAME makes a script of what you tried since the last %keep.
help(dump.read) explains; Ctrl-D ends."""


class Shell(code.InteractiveConsole):
    """Runs statements, and remembers those that worked."""

    def __init__(self, dump: Dump, library: Library, into: Path, *, trust: bool) -> None:
        scope: dict[str, Any] = {"dump": dump, "Rows": Rows}
        scope |= {name: getattr(dump, name) for name in _SHORT}
        super().__init__(scope)
        self.dump = dump
        self.library = library
        self.into = into
        self.trust = trust
        # Statements that changed something, and the last one, whatever it was.
        self.tried: list[str] = []
        self.last = ""
        self._failed = False

    def runsource(self, source: str, filename: str = "<shell>", symbol: str = "single") -> bool:
        """A statement, or a word that begins with %."""
        if source.startswith("%"):
            try:
                self._command(source[1:].split())
            except UserError as error:
                self.write(f"{error}\n")
            return False
        self._failed = False
        is_unfinished = super().runsource(source, filename, symbol)
        if not is_unfinished and not self._failed and source.strip():
            self.last = source.strip()
            if not _is_expression(source):
                self.tried.append(source)
        return is_unfinished

    def showtraceback(self) -> None:
        """A mistake about the dump is a sentence; others are shown as Python does."""
        self._failed = True
        error = sys.exc_info()[1]
        if isinstance(error, UserError):
            self.write(f"{error}\n")
        else:
            super().showtraceback()

    def showsyntaxerror(self, filename: str | None = None, **options: Any) -> None:
        """Prints the error as Python does."""
        self._failed = True
        super().showsyntaxerror(filename, **options)

    def _command(self, words: list[str]) -> None:
        if not words:
            raise UserError("no question", "%list lists them")
        name, *rest = words
        if name == "list":
            scripts = self.library.dump_scripts()
            self.write(f"{Rows(('question', 'title'), [(each.name, each.title) for each in scripts])!r}\n")
        elif name == "keep":
            self._keep(rest)
        else:
            self._ask(self.library.dump_script(name), rest)

    def _ask(self, script: DumpScript, pairs: list[str]) -> None:
        """Asks a question: `%list-find structure=module head=modules member=list`. `_` has its rows."""
        if not self.trust:
            refuse_untrusted([script], self.library)
        if lack := missing(script, self.dump):
            raise UserError(f"this kernel has no {', '.join(lack)}")
        given = dict(pair.partition("=")[::2] for pair in pairs)
        if script.columns:
            scope: dict[str, Any] = {"__name__": script.name, "Rows": Rows}
            exec(compile_script(script), scope)
            names = [column.name for column in script.columns]
            found = Rows(names, scope["run"](self.dump, **bound([script], given)[script.name]), script.name)
        else:
            bound([script], given)
            found = self.dump.table(self.library.analysis(script.shows).needs[0], script.reads)
        self.locals["_"] = found
        self.write(f"{found!r}\n")

    def _keep(self, words: list[str]) -> None:
        """Makes a script of what was tried; the last statement has to give rows."""
        if len(words) != 1:
            raise UserError("%keep takes a name", "write %keep busy-workers")
        found = eval(self.last, dict(self.locals)) if _is_expression(self.last) else None
        if not isinstance(found, Rows):
            hint = "end with rows: dump.read(...), tasks().where(...), or Rows(names, rows)"
            raise UserError("the last statement gives no rows", hint)
        used = re.findall(r"\w+", "\n".join([*self.tried, self.last]))
        names = [f"{name} = dump.{name}" for name in _SHORT if name in used]
        script, page = write_kept(words[0], self.into, [*names, *self.tried], self.last, found)
        self.tried = []
        self.write(f"{script}\n{page}\n")


def _is_expression(source: str) -> bool:
    try:
        ast.parse(source.strip(), mode="eval")
    except SyntaxError:
        return False
    return True


def run_shell(dump: Dump, library: Library, into: Path, *, trust: bool) -> None:
    """Reads statements from the terminal, or from a pipe, until their end."""
    shell = Shell(dump, library, into, trust=trust)
    history = _history()
    if sys.stdin.isatty():
        readline.set_completer(rlcompleter.Completer(dict(shell.locals)).complete)
        readline.parse_and_bind("tab: complete")
        with suppress(OSError):
            readline.read_history_file(history)
    try:
        shell.interact(_BANNER.format(dump=dump, short=", ".join(_SHORT)), exitmsg="")
    finally:
        if sys.stdin.isatty():
            with suppress(OSError):
                history.parent.mkdir(parents=True, exist_ok=True)
                readline.write_history_file(history)


def _history() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "sysdock" / "dump-history"
