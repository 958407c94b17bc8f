"""Prints the events of the imaginary system as strace does, for each set of options.

The printer works as strace's own (`printleader`, `print_syscall_resume`, `print_event_exit` in strace.c and syscall.c): it keeps the
thread whose line is open, ends that line with ` <unfinished ...>` when something else must be printed, and names the call again when
it goes on. So halves, notices in the middle of a line and the missing `[pid N]` of a lone process come about by themselves.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, replace

from generated_system import Call, Note, System, Thread
from strace_values import (
    ERROR,
    ESCAPE,
    RESET,
    RETURN,
    SYSCALL,
    Changed,
    Data,
    Fd,
    Style,
    Vector,
    Word,
    member,
    printed,
    program,
)  # fmt: skip

SECOND = 1_000_000_000
REASONS = {
    "ENOENT": "No such file or directory", "EBADF": "Bad file descriptor", "EISDIR": "Is a directory", "EIO": "Input/output error",
    "ENOSYS": "Function not implemented", "EAGAIN": "Resource temporarily unavailable", "EINTR": "Interrupted system call",
    "ERESTARTSYS": "To be restarted if SA_RESTART is set", "ERESTARTNOINTR": "To be restarted",
    "ERESTARTNOHAND": "To be restarted if no handler", "ERESTART_RESTARTBLOCK": "Interrupted by signal",
}  # fmt: skip
NUMBERS = {
    "read": 0,
    "write": 1,
    "close": 3,
    "lseek": 8,
    "mmap": 9,
    "openat": 257,
    "execve": 59,
    "clone": 56,
    "clone3": 435,
}
RAW = ("read", "write")


@dataclass(frozen=True)
class Options:
    """What strace was called with."""

    pids: str = "file"
    """none: without -f; file: -f -o; stderr: -f; separate: -ff -o."""
    comm: bool = False
    wall: str = ""
    """Wall clock: none, `time` (-t, -tt) or `unix` (-ttt), with `digits` decimals."""
    digits: int = 6
    relative: int | None = None
    """-r and its decimals."""
    took: int | None = None
    """-T and its decimals."""
    numbers: bool = False
    pointer: bool = False
    frames: int = 0
    """1: -k, 2: -kk."""
    tags: int = 0
    hex: int = 0
    length: int = 32
    verbose: bool = False
    table: bool = False
    only: str = ""
    """z: successful calls, Z: failed ones."""
    raw: bool = False
    dump: bool = False
    color: bool = False
    names: bool = False
    """-N, and where the comma stands since strace 6.16."""
    old: bool = False
    """strace 4: a blank behind `resumed>`, `(deleted)` inside the tag."""
    bits32: bool = False
    attached: bool = False
    """`strace: Process N attached` amid the log (without -q)."""

    @property
    def unit(self) -> int | None:
        """What durations are cut to, in ns."""
        return None if self.took is None else 10 ** (9 - self.took)

    @property
    def ordered(self) -> bool:
        """Whether the order of all lines is in the log: in one file, or by time."""
        return self.pids != "separate" or (self.wall != "" and self.digits >= 6)

    @property
    def new(self) -> bool:
        """strace 6.16 or later."""
        return self.names or self.color


def shown(options: Options, system: System) -> list[Call]:
    """The calls that this log holds."""
    first = system.threads[0]
    calls = [c for c in system.calls if options.pids != "none" or c.thread is first]
    if options.only:
        calls = [c for c in calls if not c.unknown and bool(c.error or c.restart) == (options.only == "Z")]
    return calls


def text(options: Options, system: System) -> dict[str, str]:
    """The log: one text, or one per thread under its file name's ending."""
    return Log(options, system).text()


def clock(now: int, digits: int) -> str:
    """The decimals of a time, cut."""
    return f".{now % SECOND // 10 ** (9 - digits):0{digits}}" if digits else ""


class Log:
    """A log being written."""

    def __init__(self, options: Options, system: System) -> None:
        self.options, self.system = options, system
        o = options
        self.style = Style(o.tags, o.hex, o.length, o.verbose, o.comm, o.color, o.old)
        self.out: dict[int, list[str]] = defaultdict(list)
        self.column: dict[int, int] = defaultdict(int)
        self.printing: Thread | None = None
        self.before = 0
        self.alive = {system.threads[0]}
        self.last_call: dict[Thread, str] = {}

    def text(self) -> dict[str, str]:
        """Prints everything in order of time."""
        keep = set(shown(replace(self.options, only=""), self.system))
        steps: list[tuple[int, object, object]] = []
        for call in keep:
            steps.append((call.start, self.enter, call))
            if call.end is not None and call.unknown != "never":
                steps.append((call.end, self.leave, call))
        first = self.system.threads[0]
        for note in self.system.notes:
            if self.options.pids != "none" or note.thread is first:
                steps.append((note.time, self.note, note))
        for _, step, event in sorted(steps, key=lambda entry: entry[0]):
            step(event)
        for key, column in self.column.items():
            if column:
                self.emit(key, " <detached ...>\n")
        if self.options.table and self.options.pids != "separate":  # there it goes to standard error
            self.out[0].append(self.table())
        return {str(key) if key else "": "".join(chunks) for key, chunks in self.out.items()}

    # Lines

    def key(self, thread: Thread) -> int:
        return thread.tid if self.options.pids == "separate" else 0

    def emit(self, key: int, text: str) -> None:
        """Text, and where it leaves the line."""
        self.out[key].append(text)
        self.column[key] = 0 if text.endswith("\n") else self.column[key] + len(ESCAPE.sub("", text))

    def leader(self, thread: Thread, now: int, name: str | None, comm: str) -> None:
        """What stands before an event; ends the line that is open."""
        o, key = self.options, self.key(thread)
        if self.column[key]:
            self.emit(key, " <unfinished ...>" + self.newline())
        self.printing = thread
        comm = program(comm, self.style)
        if o.pids == "file":
            self.emit(key, f"{thread.tid}{comm} " if comm else f"{thread.tid:<5} ")
        elif o.pids == "stderr" and len(self.alive) > 1:
            self.emit(key, f"{self.style.punct('[')}pid {thread.tid:5}{comm}{self.style.punct(']')} ")
        self.emit(key, self.clocks(now))
        if o.numbers:
            self.emit(key, f"[{NUMBERS.get(name or self.last_call.get(thread, ''), 7):4}] ")
        if o.pointer:
            self.emit(key, "[00007f9311b16011] " if name else "[????????????????] ")

    def clocks(self, now: int) -> str:
        """-t, -tt, -ttt; -r counts from the line before, of any thread."""
        o = self.options
        text = ""
        if o.wall == "unix":
            text = f"{now // SECOND}{clock(now, o.digits)} "
        elif o.wall:
            text = time.strftime("%H:%M:%S", time.gmtime(now // SECOND)) + clock(now, o.digits) + " "
        if o.relative is not None:
            passed = now - (self.before or now)
            self.before = now
            delta = f"{passed // SECOND:6}{clock(passed, o.relative)}"
            text += f"(+{delta}) " if text else f"{delta} "
        return text

    def newline(self) -> str:
        return f"{RESET}\n" if self.style.color else "\n"

    # Events

    def enter(self, call: Call) -> None:
        """Entry of a call. With -z and -Z nothing is printed before the result is known."""
        if not self.options.only:
            self.begin(call)

    def begin(self, call: Call) -> None:
        thread = call.entered_by or call.thread
        self.last_call[thread] = call.name
        self.leader(thread, call.start, call.name, call.comm)
        name = f"{SYSCALL}{self.name(call)}{RESET}" if self.style.color else self.name(call)
        end = RESET if self.style.color else ""
        self.emit(self.key(thread), name + self.style.punct("(") + self.arguments(call, True) + end)

    def leave(self, call: Call) -> None:
        """Return of a call."""
        thread, o = call.thread, self.options
        if o.only:
            if call.unknown or bool(call.error or call.restart) != (o.only == "Z"):
                return
            self.begin(call)  # stamped with its entry, printed at its return
        key = self.key(thread)
        if call.entered_by or (o.pids != "separate" and self.printing is not thread):
            if call.entered_by and o.pids == "separate":
                self.emit(self.key(call.entered_by), f" <pid changed to {thread.tid} ...>\n")
            self.leader(thread, call.end or 0, call.name, call.comm)
            self.emit(key, f"<... {self.name(call)} resumed>" + (" " if o.old else ""))
        end = f"{RESET}){RESET}" if self.style.color else ")"
        self.emit(key, self.rest(call) + end + " ")
        self.emit(key, " " * (40 - self.column[key]) + self.result(call) + self.newline())
        self.extras(key, call)
        if o.bits32 and o.pids in ("none", "stderr") and call.name == "execve":  # to standard error
            self.out[key].append(f"strace: [ Process PID={thread.process.pid} runs in 32 bit mode. ]\n")

    def note(self, note: Note) -> None:
        """Signals, ends, and what strace says about itself."""
        key = self.key(note.thread)
        if note.sort == "attached":
            self.alive |= {t for t in self.system.threads if t.tid == int(note.text)}
            if self.options.attached:  # to standard error, whatever line is open
                self.out[key].append(f"strace: Process {note.text} attached\n")
            return
        self.leader(note.thread, note.time, "" if note.sort == "gone" else "?", note.comm)
        self.emit(key, note.text + "\n")
        if note.sort == "gone":
            self.alive.discard(note.thread)
        elif note.sort == "superseded":
            self.alive = {note.thread}

    # Parts of a call

    def name(self, call: Call) -> str:
        return "_llseek" if self.options.bits32 and call.name == "lseek" else call.name

    def raw(self, call: Call) -> bool:
        return self.options.raw and call.name in RAW

    def rest(self, call: Call) -> str:
        """Arguments that are printed at the return."""
        if call.unknown == "?":
            return " <unfinished ...>" if call.at_entry < len(call.args) and not self.raw(call) else ""
        return self.arguments(call, False)

    def arguments(self, call: Call, entry: bool) -> str:
        """One half of the arguments. strace up to 6.15 prints a comma with the argument before it, later with the one after it."""
        late = call.late_comma or self.options.new
        at_entry = len(call.args) if self.raw(call) else call.at_entry
        comma, out = self.style.punct(", "), []
        chosen = range(at_entry) if entry else range(at_entry, len(call.args))
        if not entry and at_entry > 0 and isinstance(call.args[at_entry - 1][1], Changed):
            out.append(f" => {call.args[at_entry - 1][1].after}")
        for index in chosen:
            name, value = call.args[index]
            word = self.hexadecimal(value) if self.raw(call) else self.value(call, index, value, entry)
            if name and (self.options.names or call.name == "clone"):
                word = member(name, word, self.style)
            last = index + 1 == len(call.args)
            out.append((comma if late and index else "") + word + ("" if late or last else comma))
        return "".join(out)

    def value(self, call: Call, index: int, value: object, entry: bool) -> str:
        if isinstance(value, Changed) and entry and index + 1 == call.at_entry:
            return value.before
        if self.options.bits32 and call.name == "lseek" and index == 2:
            return f"[{call.result}], {printed(value, self.style)}"
        return printed(value, self.style)

    def hexadecimal(self, value: object) -> str:
        """An argument under -e raw: a number or an address, no tag."""
        match value:
            case Fd(number):
                return f"{number:#x}"
            case Word(text) if text:
                return f"{int(text):#x}"
        return "0x7fcb48513170"

    def result(self, call: Call) -> str:
        """From the `=` on."""
        style = self.style
        parts: list[tuple[str, str]] = []
        if call.unknown:
            parts = [(RETURN, "?")] + ([(RETURN, "<unavailable>")] if call.unknown == "unavailable" else [])
        elif code := call.error or call.restart:
            parts = [(RETURN, "?" if call.restart else "-1"), (ERROR, code), (ERROR, f"({REASONS[code]})")]
        else:
            parts = [(RETURN, self.number(call))]
        if call.mark:
            parts.append((RETURN, f"({call.mark})"))
        if self.options.took is not None and not call.unknown:
            took = (call.end or 0) - call.start
            text = f"{took // SECOND}{clock(took, self.options.took)}"
            parts.append((RETURN, f"{style.punct('<')}{text}{style.punct('>')}"))
        if not style.color:
            return "= " + " ".join(text for _, text in parts)
        return f"{RESET}={RESET}" + "".join(f"{RESET} {color}{text}" for color, text in parts) + RESET

    def number(self, call: Call) -> str:
        """A return value."""
        if call.made is not None:
            return printed(call.made, self.style)
        if self.name(call) == "_llseek":
            return "0"
        return f"{call.result:#x}" if self.raw(call) or call.returns == "hex" else str(call.result)

    def extras(self, key: int, call: Call) -> None:
        """What follows a finished call: -e read= and -e write=, then -k."""
        if (
            self.options.dump
            and call.moved
            and call.kind != "socket"
            and call.name not in ("sendfile", "copy_file_range")
        ):
            for _, value in call.args:
                if isinstance(value, Data):
                    self.emit(key, dump(value.data))
                elif isinstance(value, Vector):
                    for number, (data, _) in enumerate(value.parts):
                        self.emit(key, f" * {len(data)} bytes in buffer {number}\n" + dump(data))
        if self.options.frames and not call.unknown:
            line = " /src/a b.c:12" if self.options.frames == 2 else ""
            self.emit(key, f" > /usr/lib/libc.so.6({call.name}+0x10) [0x1234]{line}\n")
            self.emit(
                key, " > /opt/a b/x) = 3 (x::f(int, char const*)+0xff) [0x99]\n > /usr/bin/demo() [0x1000]\n"
            )
            self.emit(key, " > unexpected_backtracing_error [0x7ffe]\n")

    def table(self) -> str:
        """-C: counts what returned."""
        done = [c for c in shown(self.options, self.system) if not c.unknown]
        calls, failed = Counter(c.name for c in done), Counter(c.name for c in done if c.error or c.restart)
        rule = "------ ----------- ----------- --------- --------- ----------------\n"
        head = "% time     seconds  usecs/call     calls    errors syscall\n"
        lines = [
            f" 10.00    0.000100          10 {n:9} {failed[name] or '':9} {name}\n"
            for name, n in calls.items()
        ]
        total = f"100.00    0.001000           1 {len(done):9} {sum(failed.values()):9} total\n"
        return head + rule + "".join(lines) + rule + total


def dump(data: bytes) -> str:
    """The 16 bytes per line of `dumpstr`."""
    lines = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        pairs = "  ".join(" ".join(f"{byte:02x}" for byte in half) for half in (row[:8], row[8:]))
        plain = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f" | {at:05x}  {pairs:<48}  {plain:<16} |\n")
    return "".join(lines)
