"""Common code of `run`, `record` and `import`: the native program, its progress, the answer after it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO

import click

from sysdock.cli.output import remark, terminal_width
from sysdock.cli.progress import ProgressLine
from sysdock.errors import UserError
from sysdock.own_folder import refuse_existing
from sysdock.recording.caller import become_caller, in_process_of_caller, with_rights_of_caller
from sysdock.recording.native import native_words, run_native
from sysdock.recording.signals import HEARD, die_by

if TYPE_CHECKING:
    from sysdock.analysis import Session
    from sysdock.library import Library


def run_with_progress(arguments: Sequence[str], forward: Sequence[int], within: Path | None = None) -> int:
    """Runs the native program under a progress line; returns its exit status as a shell has it.

    `within`: its working directory.
    """
    code = _run_showing_progress(arguments, forward, within)
    return code if code >= 0 else 128 - code


def _run_showing_progress(
    arguments: Sequence[str], forward: Sequence[int], within: Path | None = None
) -> int:
    line = ProgressLine()
    try:
        return run_native(arguments, line.update, forward=forward, within=within)
    finally:
        line.clear()


def run_native_recorder(folder: Path, options: Mapping[str, object], command: Sequence[str]) -> int:
    """Records into a new folder; returns how the command ended: its exit status, or -N for signal N."""
    refuse_existing(folder)
    words = native_words("record", {"output": folder, **options}, *command)
    return _run_showing_progress(words, HEARD)


def end_as(ctx: click.Context, code: int) -> NoReturn:
    """Ends as the command did, so that no one who waits for us sees a difference."""
    if code < 0:
        die_by(-code)
    ctx.exit(code)


def refuse_missing(target: Path) -> None:
    """Raises a UserError where there is nothing to scan, before the command runs for nothing."""
    if not target.exists():
        raise UserError("no such file or folder", "name a folder, a mount point or a file", str(target))


def add_scan(folder: Path, target: Path) -> None:
    """Scans where the files of `target` lie, into the recording of a command; a line says if that fails.

    What the command did is recorded by then, and stays so. A recording that was broken off takes no scan.
    """
    from sysdock.recording import Recording

    with with_rights_of_caller():
        complete = Recording.open(folder).manifest["complete"]
    if not complete:
        remark(f"{target} was not scanned: the recording of the command is incomplete")
        return
    words = native_words("disk scan", {"into": True, "output": folder}, target)
    if run_with_progress(words, (signal.SIGTERM, signal.SIGHUP)):
        remark(f"the scan of {target} is not complete")


def write_used_files(recording: Path, out: Path) -> None:
    """Writes the list of files that a recording uses, for a scan, with the rights of who called sudo."""
    from sysdock.disk.usage import write_list

    with open(out, "wb") as file:

        def write() -> None:
            write_list(recording, file)
            file.flush()

        in_process_of_caller(recording, write)


def load_ahead() -> Callable[[], Library]:
    """Loads what the answer needs in a thread, while the native program works; it gives way to all else.

    Returns what gives the know-how when it is needed. The interpreter waits for the thread at its end: one
    that it ends within the engine's C++ aborts the process.
    """
    loaded: list[Library] = []

    def load() -> None:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        import sysdock.analysis
        import sysdock.analysis.diagnosis
        import sysdock.screen.answer  # noqa: F401
        from sysdock.engine import duckdb
        from sysdock.library import Library

        # The first connection of a process takes twice as long as the next.
        duckdb.connect().close()
        # A mistake in the know-how is reported when it is used.
        with contextlib.suppress(UserError):
            library = Library()
            loaded.append(library)
            # Under sudo, that of a user is read with the rights of that user only: later.
            if library.is_own:
                for read in (library.tables, library.rules, library.products):
                    read()

    thread = threading.Thread(target=load)
    thread.start()

    def library() -> Library:
        from sysdock.library import Library

        thread.join()
        return loaded[0] if loaded else Library()

    return library


def answer(folder: Path, library: Callable[[], Library], out: TextIO, lang: str, with_report: bool) -> None:
    """Prints the one-screen answer to `out`; `with_report` writes the report into the recording first.

    The recording exists by now, so nothing that goes wrong here is an error of the verb: it is reported, and
    that is all.
    """
    from sysdock.analysis import Session
    from sysdock.config import config
    from sysdock.recording import Recording
    from sysdock.screen.answer import answer_lines, words_to_paint
    from sysdock.screen.color import painted

    try:
        become_caller(folder)
        recording = Recording.open(folder)
        if not recording.tables:
            # The native program ended before it wrote the first one, and has reported why if it could.
            remark(f"nothing was recorded in {folder}")
            return
        known = library()
        with Session(recording, known, limits=config().limits(known)) as session:
            report = _report(session, folder / "report.html", lang) if with_report else None
            lines = answer_lines(session, report, lang, terminal_width(out))
            print("\n".join(painted(lines, words_to_paint(lang), out)), file=out, flush=True)
    except UserError as error:
        remark(str(error))


def _report(session: Session, path: Path, lang: str) -> Path | None:
    try:
        from sysdock.report import write_report

        write_report(session, path, lang)
    except (UserError, ImportError, OSError) as error:
        remark(f"no report was written: {error}")
        return None
    return path
