"""A small imaginary system for generated logs: what happened, to whom, and the totals that follow.

Nothing here knows how a tracer prints. Times are integer nanoseconds, and no two events share one. A call that a signal interrupted
and the kernel restarted consists of several `Call`s, its parts, linked by `first`; it makes one `Row`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

# With the names that truss has for them.
READS = ("read", "pread64", "readv", "recvfrom", "pread", "recv")
WRITES = ("write", "pwrite64", "writev", "sendto", "pwrite", "send")
COPIES = ("sendfile", "copy_file_range", "splice")
EPOCH = 1_700_000_000_000_000_000
"""Tuesday 2023-11-14 22:13:20 UTC."""


@dataclass
class File:
    """What lies on disk (or nowhere) and has a size."""

    size: int = 0


@dataclass
class OpenFile:
    """An open file description: shared by dup, fork and threads, with one position."""

    name: bytes
    kind: str = "file"
    file: File = field(default_factory=File)
    position: int = 0
    append: bool = False
    deleted: bool = False
    detail: str = ""
    """What -yy adds to the name, or prints in its place for sockets."""
    busy: list[Call] = field(default_factory=list)
    """Transfers at its position that have begun and not returned."""


@dataclass
class Process:
    """A thread group: descriptors, working directory, program."""

    pid: int
    parent: Process | None
    comm: str
    cwd: bytes = b"/"
    fds: dict[int, OpenFile] = field(default_factory=dict)
    on_exec: set[int] = field(default_factory=set)
    """Descriptors that exec closes."""

    def place(self, file: OpenFile, at_least: int = 0, cloexec: bool = False) -> int:
        """Gives a file the lowest free number."""
        number = next(n for n in range(at_least, 10_000) if n not in self.fds)
        self.fds[number] = file
        if cloexec:
            self.on_exec.add(number)
        return number


@dataclass(eq=False)
class Thread:
    """A thread, and its process."""

    tid: int
    process: Process
    alive: bool = True


@dataclass(eq=False)
class Call:
    """One system call, or one part of it, with what is printed and what is true."""

    thread: Thread
    name: str
    args: list[tuple[str, object]]
    """Name and value (see strace_values.py) of each argument."""
    at_entry: int
    """How many arguments are known before the call returns."""
    start: int
    comm: str
    end: int | None = None
    result: int | None = None
    returns: str = "number"
    """What the result is: number, hex, fd, pid."""
    made: object = None
    """The value of a returned descriptor."""
    error: str | None = None
    restart: str | None = None
    """ERESTARTSYS and its kin: interrupted by a signal."""
    unknown: str | None = None
    """`?`: ended with its thread. `unavailable`: the tracer could not read the result. `never`: no end was seen."""
    mark: str = ""
    first: Call | None = None
    late_comma: bool = False
    """Printed at return: the comma before the next argument (clone; all calls since strace 6.16)."""
    entered_by: Thread | None = None
    """Who printed the first half, where an exec changed the id."""
    path: bytes | None = None
    kind: str | None = None
    moved: int | None = None
    offset: int | None = None
    uncertain: bool = False


@dataclass(eq=False)
class Note:
    """Something that is no call: `signal`, `gone` (the thread ended), `superseded`, `attached`."""

    thread: Thread
    time: int
    sort: str
    text: str
    comm: str


@dataclass
class Row:
    """A call as the importer should see it."""

    call: Call
    parts: list[Call]

    @property
    def name(self) -> str:
        return self.parts[0].name if self.parts[0].first is None else self.parts[0].first.name

    @property
    def last(self) -> Call:
        return self.parts[-1]

    @property
    def failed(self) -> bool:
        """Whether it has an error; a restart that went on has none."""
        return bool(self.last.error or self.last.restart)

    def time(self, unit: int) -> int | None:
        """The sum over the parts, each cut to the tracer's unit (strace divides, it does not round)."""
        ends = [(p.end - p.start) // unit * unit for p in self.parts if p.end is not None and not p.unknown]
        return sum(ends) if ends else None


def rows(calls: Iterable[Call]) -> list[Row]:
    """One row for each call; parts of an interrupted one together."""
    found: dict[int, Row] = {}
    for call in sorted(calls, key=lambda c: c.start):
        key = id(call.first or call)
        found.setdefault(key, Row(call.first or call, [])).parts.append(call)
    return list(found.values())


@dataclass
class Totals:
    """What is known about a set of rows."""

    calls: dict[str, tuple[int, int, int, int | None]]
    """Per call: number, errors, bytes moved, time."""
    paths: dict[str, tuple[int, int, int, int | None]]
    """Per path (per kind, where it is no file): calls, bytes read, bytes written, time."""
    offsets: dict[str, list[tuple[str, int]]]
    """Per file, in order of time: call and offset of each transfer whose offset is certain."""
    uncertain: Counter[str]
    """Per file: transfers that shared a position with one under way at the same time."""
    threads: dict[tuple[int, int], int]
    """Calls per process and thread."""
    starts: list[int]


def text_of(name: bytes) -> str:
    """A path as the recording states it: bytes that are not UTF-8 stand as \\xNN."""
    return name.decode("utf-8", "backslashreplace")


def totals(found: list[Row], unit: int | None) -> Totals:
    """Sums up; `unit` is what the tracer cuts durations to, None where it prints none."""
    calls: dict[str, list] = defaultdict(lambda: [0, 0, 0, 0])
    paths: dict[str, list] = defaultdict(lambda: [0, 0, 0, 0])
    offsets = defaultdict(list)
    uncertain: Counter[str] = Counter()
    for row in found:
        last, took = row.last, (row.time(unit) or 0) if unit else 0
        _add(calls[row.name], 1, row.failed, last.moved or 0, took)
        if last.path is None or row.name in COPIES:
            continue
        key = text_of(last.path) if last.kind in ("file", "directory", "unknown") else str(last.kind)
        read = last.moved if row.name in READS else 0
        written = last.moved if row.name in WRITES else 0
        _add(paths[key], 1, read or 0, written or 0, took)
        if last.uncertain:
            uncertain[key] += 1
        elif last.offset is not None and last.kind == "file":
            offsets[key].append((row.name, last.offset))
    return Totals(
        calls={name: _entry(entry, unit) for name, entry in calls.items()},
        paths={name: _entry(entry, unit) for name, entry in paths.items()},
        offsets=dict(offsets),
        uncertain=uncertain,
        threads=dict(Counter((row.call.thread.process.pid, row.call.thread.tid) for row in found)),
        starts=sorted(row.parts[0].start for row in found),
    )


def _add(entry: list, *numbers: int) -> None:
    for index, number in enumerate(numbers):
        entry[index] += number


def _entry(entry: list, unit: int | None) -> tuple:
    return (*entry[:3], entry[3] if unit else None)


class System:
    """The clock, the files, the threads, and the list of all that happened."""

    def __init__(self, seed: int, begin: int = EPOCH) -> None:
        self.random = Random(seed)
        self.now = begin
        self.begin = begin
        self.files: dict[bytes, File] = {}
        self.threads: list[Thread] = []
        self.calls: list[Call] = []
        self.notes: list[Note] = []
        self.next_tid = 1000
        self.inode = 4200

    def tick(self, most: int = 40_000) -> int:
        """Time goes on by more than a microsecond, so that a log in microseconds has an order."""
        self.now += self.random.randrange(2_000, most)
        return self.now

    def thread(self, process: Process) -> Thread:
        """A new thread of a process whose pid may be still to be given (0)."""
        thread = Thread(self.next_tid, process)
        self.next_tid += self.random.randrange(1, 4)
        if process.pid == 0:
            process.pid = thread.tid
        self.threads.append(thread)
        return thread

    def begin_call(self, thread: Thread, name: str, args: list, at_entry: int | None = None, **more) -> Call:
        """A thread enters a call."""
        entry = len(args) if at_entry is None else at_entry
        call = Call(thread, name, args, entry, self.tick(), thread.process.comm, **more)
        self.calls.append(call)
        return call

    def end(self, call: Call, after: int = 0) -> Call:
        """A call returns."""
        self.now += after
        call.end = self.tick()
        for thread in {t.process.pid: t for t in self.threads}.values():
            for file in thread.process.fds.values():
                if call in file.busy:
                    file.busy.remove(call)
        return call

    def note(self, thread: Thread, sort: str, text: str) -> None:
        """Something that is no call happens to a thread."""
        self.notes.append(Note(thread, self.tick(), sort, text, thread.process.comm))

    def file(self, name: bytes) -> File:
        """The file of this name, made if need be."""
        return self.files.setdefault(name, File())

    def number(self) -> int:
        """An inode number."""
        self.inode += 1
        return self.inode
