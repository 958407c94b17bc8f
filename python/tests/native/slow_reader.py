"""An independent reader of strace logs: slow, short, right-anchored where the importer scans forward.

It knows nothing of descriptors or processes; it only counts. It is the oracle for counts, errors, bytes and times per call.

A call that a signal interrupts (`= ? ERESTARTSYS`) and that the kernel starts again is one call in several lines, its
parts: the next one has the same name, first argument and count, or is `restart_syscall`. Where `rt_sigreturn` gives EINTR,
the program got the interruption instead, and there is no next part.
"""

from __future__ import annotations

import gzip
import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path

PREFIX = re.compile(r"^(?:\[pid +)?(\d+)?\]? *(?:[\d:.]+ )? *(.*)$", re.DOTALL)
WHOLE = re.compile(r"^(\w+)\(.*\)\s+= (\?|-?\d+|0x[0-9a-f]+)(?:<.*?>)?(.*?)(?: <(\d+\.\d+)>)?$", re.DOTALL)
MOVES = "read pread64 readv preadv recvfrom recvmsg write pwrite64 writev pwritev sendto sendmsg sendfile splice copy_file_range"
MESSAGES = "recvmmsg sendmmsg"
STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


@dataclass
class Total:
    """Totals of one call: number, errors, bytes transferred, time [ns], and number of calls without a known result."""

    calls: int = 0
    errors: int = 0
    transferred_bytes: int = 0
    time_ns: int = 0


@dataclass
class Log:
    """Totals by name: of `calls`, and of their `parts`, which are what strace counts."""

    calls: dict[str, Total] = field(default_factory=lambda: defaultdict(Total))
    parts: dict[str, Total] = field(default_factory=lambda: defaultdict(Total))

    @property
    def restarted(self) -> int:
        """Parts that belong to a call which began in an earlier line."""
        return sum(t.calls for t in self.parts.values()) - sum(t.calls for t in self.calls.values())


@dataclass(frozen=True)
class Part:
    """One line with a call. `first` and `count` are the arguments that tell whether another one continues it."""

    name: str
    first: str = ""
    count: str = ""
    error: str = ""
    transferred_bytes: int = 0
    time_ns: int = 0

    def add_to(self, totals: dict[str, Total]) -> None:
        total = totals[self.name]
        total.calls += 1
        total.errors += bool(self.error)
        total.transferred_bytes += self.transferred_bytes
        total.time_ns += self.time_ns

    def continued_by(self, later: Part) -> bool:
        same = (self.name, self.first, self.count) == (later.name, later.first, later.count)
        return same or later.name == "restart_syscall"

    def joined(self, later: Part) -> Part:
        return replace(
            later, name=self.name, first=self.first, count=self.count, time_ns=self.time_ns + later.time_ns
        )


def read(*paths: Path) -> Log:
    """Totals per call of one log, or of all files of a set."""
    log = Log()
    for path in paths:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="latin-1", newline="\n") as lines:
            _read_lines(lines, log)
    return log


def _read_lines(lines, log: Log) -> None:
    halves: dict[str | None, str] = {}
    interrupted: dict[str | None, list[Part]] = defaultdict(list)
    for line in lines:
        thread, text = PREFIX.match(line.rstrip("\n")).groups()
        if text.endswith(" <unfinished ...>"):
            halves[thread] = text.removesuffix("<unfinished ...>")
            continue
        if text.startswith("<... "):
            text = halves.pop(thread) + text.split(" resumed>", 1)[1]
        if text.startswith("+++ superseded by execve in pid "):
            _unfinished(halves.pop(thread, None), log)
            halves[thread] = halves.pop(text.split()[6])
        elif text.startswith("+++"):
            _unfinished(halves.pop(thread, None), log)
            _never_continued(interrupted.pop(thread, []), log)
        elif part := _part(WHOLE.match(text), text):
            part.add_to(log.parts)
            _call(part, interrupted[thread], log)
    for half in halves.values():
        _unfinished(half, log)
    for waiting in interrupted.values():
        _never_continued(waiting, log)


def _part(match, text: str) -> Part | None:
    if not match:
        return None
    name, value, rest, seconds = match.groups()
    arguments = text[len(name) + 1 : text.rindex(")", 0, match.start(2))]
    error = re.match(r" (E[A-Z_]+)", rest) if value in ("-1", "?") else None
    moved = int(value) if name in MOVES.split() and value.isdigit() else 0
    if name in MESSAGES.split() and value.isdigit():
        moved = _message_bytes(arguments, int(value))
    whole, fraction = seconds.split(".") if seconds else ("0", "0")
    return Part(
        name,
        arguments.split(",")[0],
        arguments.rsplit(", ", 1)[-1] if name in ("read", "write") else "",
        error[1] if error else "",
        moved,
        int(whole) * 10**9 + int(fraction.ljust(9, "0")),
    )


def _message_bytes(arguments: str, messages: int) -> int:
    """Bytes of the messages that a call moved: 0 where strace did not print all of them."""
    lengths = re.findall(r"\bmsg_len=(\d+)", STRING.sub("", arguments))
    return sum(map(int, lengths)) if len(lengths) == messages else 0


def _call(part: Part, waiting: list[Part], log: Log) -> None:
    """Counts a call, unless it was interrupted: then it waits for its next part, behind those of outer handlers."""
    if waiting and waiting[-1].continued_by(part):
        part = waiting.pop().joined(part)
    elif waiting and part.name == "rt_sigreturn" and part.error == "EINTR":
        waiting.pop().add_to(log.calls)
    if part.error.startswith("ERESTART"):
        waiting.append(part)
    else:
        part.add_to(log.calls)


def _never_continued(waiting: list[Part], log: Log) -> None:
    for part in waiting:
        part.add_to(log.calls)


def _unfinished(half: str | None, log: Log) -> None:
    if half:
        for totals in (log.calls, log.parts):
            totals[half.split("(")[0]].calls += 1
