"""The journal of an experiment: what is to be undone, on disk before it is done.

A journal is a file of JSON lines. The first names the process that writes it (number, start time, boot), one
line follows for each change before it is made, and one when it was undone. The file goes when nothing is left
to undo, so that a journal whose process is gone means an experiment that was broken off: `repair` undoes what
it says.

The process, and each tool that it starts to change something, hold a lock on the file (flock(2)): whoever
gets the lock knows that no mount or mkfs of a process that was killed is still on its way.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sysdock import to_disk
from sysdock.errors import UserError
from sysdock.experiment.state import processes
from sysdock.experiment.state.processes import Process
from sysdock.own_folder import create
from sysdock.recording.signals import held_back

_VERSION = 1
_SUFFIX = ".journal"
_NUMBERS = itertools.count(1)
# A journal that grew beyond this begins again when everything in it is undone.
_LONG = 1 << 20
Entry = dict[str, str]


def folder() -> Path:
    """Folder of journals: /var/lib/sysdock/experiments for root, otherwise in the user's state folder.

    SYSDOCK_STATE names another folder, for tests.
    """
    if own := os.environ.get("SYSDOCK_STATE"):
        return Path(own)
    if os.geteuid() == 0:
        return Path("/var/lib/sysdock/experiments")
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "sysdock" / "experiments"


@dataclass
class Written:
    """The contents of a journal: its writer, and changes that are not undone, by number. `bad` names
    damaged lines.
    """

    path: Path
    what: str
    writer: Process
    boot: str
    open: dict[int, Entry]
    last: int
    bad: list[int] = field(default_factory=list)

    @property
    def is_of_this_boot(self) -> bool:
        """Whether the machine was not restarted since."""
        return self.boot == processes.boot()

    @property
    def is_alive(self) -> bool:
        """Whether the process that writes it still runs."""
        return self.is_of_this_boot and self.writer.alive()


class Journal:
    """Changes to be undone, on disk before they are made. States: open, closed."""

    def __init__(self, path: Path, handle: int, written: Written) -> None:
        self.path = path
        self._handle = handle
        self._written = written
        self._head = 0

    @classmethod
    def begin(cls, what: str) -> Journal:
        """A new file in the journal folder; `what` names experiment and output folder, for messages."""
        place = folder()
        pid = os.getpid()
        writer = processes.process(pid)
        assert writer is not None
        path = place / f"{pid}-{writer.start}-{next(_NUMBERS)}{_SUFFIX}"
        first = {
            "journal": _VERSION,
            "what": what,
            "pid": pid,
            "start": writer.start,
            "boot": processes.boot(),
        }
        head = (json.dumps(first) + "\n").encode()
        with held_back():
            try:
                if not place.exists():
                    # Another experiment may have made it meanwhile.
                    with suppress(UserError):
                        create(place).close()
                _check_owner(place)
                to_disk.write(path, head, 0o600)
                handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
            except OSError as error:
                hint = "experiments keep their undo journal there; free some space, or grant write permission"
                raise UserError(f"no journal can be started: {_reason(error)}", hint, str(place)) from None
            fcntl.flock(handle, fcntl.LOCK_EX)
        made = cls(path, handle, Written(path, what, writer, processes.boot(), {}, 0))
        made._head = len(head)
        return made

    @classmethod
    def take_over(cls, written: Written) -> Journal | None:
        """The journal of a process that is gone; None while somebody holds it: a repair, or a tool that still
        runs.

        It is read again, as another repair may have gone before.
        """
        try:
            handle = os.open(written.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        now = read(written.path)
        if now is None:
            os.close(handle)
            return None
        made = cls(written.path, handle, now)
        # A line that was being written when the power failed must not run into the next.
        os.ftruncate(handle, written.path.read_bytes().rfind(b"\n") + 1)
        return made

    @property
    def handle(self) -> int:
        """The locked file, for tools that change something: they hold the lock as long as they run."""
        return self._handle

    @property
    def name(self) -> str:
        """The name of the file without its end; processes of this experiment carry it."""
        return self.path.stem

    @property
    def is_of_this_boot(self) -> bool:
        """Whether the machine was not restarted since it was begun."""
        return self._written.is_of_this_boot

    @property
    def written(self) -> Written:
        """The contents of the journal now."""
        return self._written

    def note(self, undo: Entry) -> int:
        """Writes what undoes a change, and brings it to the disk BEFORE the change; returns its number."""
        number = self._written.last + 1
        with held_back():
            try:
                self._append((json.dumps({"note": number, **undo}) + "\n").encode())
                os.fsync(self._handle)
            except OSError as error:
                fact = f"the undo journal cannot be written, so nothing was changed: {_reason(error)}"
                raise UserError(fact, "give room there", str(self.path)) from None
            self._written.last = number
            self._written.open[number] = undo
        return number

    def undone(self, number: int) -> None:
        """Notes that a change was undone. It may get lost: undoing twice does no harm."""
        with held_back():
            self._written.open.pop(number, None)
            if not self._written.open and self._head and os.fstat(self._handle).st_size > _LONG:
                os.ftruncate(self._handle, self._head)
            else:
                with suppress(OSError):
                    self._append((json.dumps({"undone": number}) + "\n").encode())

    def close(self) -> None:
        """Removes the file when everything is undone; else it stays, for `repair`."""
        if self._handle < 0:
            return
        with held_back():
            if not self._written.open and not self._written.bad:
                self.path.unlink(missing_ok=True)
                to_disk.sync(self.path.parent)
            os.close(self._handle)
            self._handle = -1

    def _append(self, line: bytes) -> None:
        """All of it, or an error and nothing of it that would be read as a line."""
        length = os.fstat(self._handle).st_size
        try:
            done = os.write(self._handle, line)
            while done < len(line):
                done += os.write(self._handle, line[done:])
        except OSError:
            os.ftruncate(self._handle, length)
            raise


def journals(unreadable: list[UserError] | None = None) -> Iterator[Written]:
    """All journals there are, those of running experiments, too.

    unreadable: takes what is wrong with files that are no journals; they are left out.
    """
    place = folder()
    if place.is_dir():
        _check_owner(place)
    for path in sorted(place.glob(f"*{_SUFFIX}")):
        try:
            if (found := read(path)) is not None:
                yield found
        except UserError as error:
            if unreadable is not None:
                unreadable.append(error)


def _check_owner(place: Path) -> None:
    """A journal is executed with our rights, so no one else may write to it."""
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        fact = "other users may write to the folder of undo journals"
        raise UserError(
            fact, f"inspect it, then: chown {os.geteuid()} {place}; chmod 700 {place}", str(place)
        )


def read(path: Path) -> Written | None:
    """The contents of a journal; None if it no longer exists, or is unreadable."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(
            _reason(error), "journals are read as the user who ran the experiment", str(path)
        ) from None
    head = _parsed(lines[0])
    if head is None or head.get("journal") != _VERSION or not _is_head(head):
        raise UserError("not a journal of an experiment, or one of another version", "inspect it", str(path))
    found = Written(path, head["what"], Process(head["pid"], head["start"]), head["boot"], {}, 0)
    for number, line in enumerate(lines[1:], 2):
        # Text after the last line end was not on disk, so the change that it announces was not made.
        if not line or number == len(lines):
            continue
        _take(found, number, _parsed(line))
    return found


def _is_head(head: dict[str, Any]) -> bool:
    kinds = {"what": str, "pid": int, "start": int, "boot": str}
    return all(type(head.get(key)) is kind for key, kind in kinds.items())


def _take(found: Written, number: int, row: dict[str, Any] | None) -> None:
    if row is None:
        found.bad.append(number)
    elif type(row.get("undone")) is int:
        found.open.pop(row["undone"], None)
    elif isinstance(row.get("note"), int) and isinstance(row.get("kind"), str):
        found.last = max(found.last, row["note"])
        found.open[row["note"]] = {key: str(value) for key, value in row.items() if key != "note"}
    else:
        found.bad.append(number)


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _reason(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "no space left on the disk"
    return (error.strerror or str(error)).lower()
