"""Prints the events of the imaginary system as truss of illumos does (usr/src/cmd/truss: main.c, actions.c, print.c).

truss prints a call when it returns, stamped with the time of its return in tenths of a millisecond. A call that sleeps is printed
before, too, with `(sleeping...)`. There are no tags and no halves. Paths escape quotes and unprintable bytes, but not backslashes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from generated_system import COPIES, Call, Note, System, Thread, Totals
from strace_values import (
    Data,
    Entries,
    Environment,
    Fd,
    Here,
    PathName,
    Pid,
    Pointer,
    Stat,
    Strings,
    Vector,
    Word,
    printed,
)
from strace_values import Style as StraceStyle

NAMES = {
    "newfstatat": "fstatat", "exit_group": "_exit", "exit": "lwp_exit", "pipe2": "pipe", "dup": "fcntl", "dup2": "fcntl",
    "sendto": "send", "recvfrom": "recv", "clone": "forkx", "vfork": "vforkx", "clone3": "lwp_create", "wait4": "waitid",
    "pread64": "pread", "pwrite64": "pwrite", "socket": "so_socket",
}  # fmt: skip
ERRORS = {"ENOENT": 2, "EIO": 5, "EBADF": 9, "EISDIR": 21}
LEFT_OUT = (*COPIES, "futex", "syscall_0x1c5")
DUMPED = ("read", "write", "pread64", "pwrite64", "sendto", "recvfrom")
SHORT = {0: r"\0", 8: r"\b", 9: r"\t", 10: r"\n", 11: r"\v", 12: r"\f", 13: r"\r"}


@dataclass(frozen=True)
class Options:
    """What truss was called with, always with -f."""

    stamps: str = ""
    """-d, -D, -E in any combination."""
    lwp: bool = True
    """-l; without it the thread is named where a process has several."""
    arguments: bool = False
    """-a -e."""
    dumps: bool = False
    """-r all -w all."""
    old: bool = False
    """Solaris 10: open and stat."""
    verbose: bool = False
    """-v all."""


def shown(options: Options, system: System) -> list[Call]:
    """The calls that the log holds, under their names there. The child's side of a fork is none of its own (nor is it for truss -c)."""
    return [replace(call, name=named(call, options)) for call in system.calls if call.name not in LEFT_OUT]


def named(call: Call, options: Options) -> str:
    """The name of a call on Solaris: since 11, and in illumos, open and stat are cases of openat and fstatat."""
    if options.old and isinstance(call.args[0][1] if call.args else None, Here):
        return {"openat": "open", "newfstatat": "stat"}[call.name]
    return NAMES.get(call.name, call.name)


def threads(totals: Totals, system: System) -> dict[tuple[int, int], int]:
    """Calls per process and LWP."""
    lwps = {thread.tid: lwp(system, thread) for thread in system.threads}
    return {(pid, lwps[tid]): count for (pid, tid), count in totals.threads.items()}


def lwp(system: System, thread: Thread) -> int:
    """Number of a thread in its process, from 1."""
    return [t for t in system.threads if t.process is thread.process].index(thread) + 1


def shown_bytes(data: bytes) -> str:
    """Two columns per byte: a blank and the character, an escape, or two hexadecimal digits."""
    return "".join(SHORT.get(b) or (f" {chr(b)}" if 32 <= b < 127 else f"{b:02X}") for b in data)


def path(name: bytes) -> str:
    """escape_string: quotes and unprintable bytes only."""
    return '"' + "".join('\\"' if b == 34 else chr(b) if 32 <= b < 127 else f"\\x{b:02x}" for b in name) + '"'


def text(options: Options, system: System) -> str:
    """The log."""
    return Log(options, system).text()


class Log:
    """A log being written."""

    def __init__(self, options: Options, system: System) -> None:
        self.options, self.system = options, system
        self.out: list[str] = []
        self.last: dict[Thread, int] = {}

    def text(self) -> str:
        """Everything in order of time."""
        if "d" in self.options.stamps:
            begin = self.system.begin
            day = time.strftime("%a %b %e %H:%M:%S", time.gmtime(begin // 10**9))
            self.out.append(
                f"Base time stamp:  {begin // 10**9}.{begin % 10**9 // 100_000:04}  [ {day} UTC 2023 ]\n"
            )
        steps: list[tuple[int, object, object]] = []
        for call in (call for call in self.system.calls if call.name not in LEFT_OUT):
            slept = (call.end or 0) - call.start > 1_000_000
            if slept or call.name == "vfork" or call.unknown == "never":
                steps.append((call.start + 1, self.sleeping, call))
            if call.end is not None and call.unknown != "never":
                steps.append((call.end, self.done, call))
        steps += [(note.time, self.note, note) for note in self.system.notes]
        for _, step, event in sorted(steps, key=lambda entry: entry[0]):
            step(event)
        return "".join(self.out)

    # Lines

    def prefix(self, thread: Thread) -> str:
        """`PID/LWP:` and a tab, or two where that is short (make_pname)."""
        pid, several = thread.process.pid, sum(t.process is thread.process for t in self.system.threads) > 1
        named = self.options.lwp or several
        text = f"{pid}/{lwp(self.system, thread)}:\t" if named else f"{pid}:\t"
        return text + ("\t" if named and len(text) < 9 else "")

    def stamp(self, thread: Thread, now: int, busy: int = 0) -> str:
        """-d, -D, -E in this order; -E is the processor time of the LWP."""
        tenths = (now - self.system.begin + 50_000) // 100_000
        values = {"d": tenths, "D": tenths - self.last.get(thread, 0), "E": (busy + 50_000) // 100_000}
        self.last[thread] = tenths
        return "".join(
            f"{v // 10_000:2}.{v % 10_000:04}\t" for key, v in values.items() if key in self.options.stamps
        )

    def line(self, call: Call, now: int, result: str, column: int = 6) -> None:
        """A call, tabs up to the column, the result."""
        words = self.words(call, result == "(sleeping...)")
        tabs = max(column - len(words) // 8, 0)
        gap = "\t" * tabs or " "
        busy = min((call.end or now) - call.start, 30_000)
        self.out.append(
            self.prefix(call.thread)
            + self.stamp(call.thread, now, busy)
            + words
            + (gap + result if result else "")
            + "\n"
        )

    def sleeping(self, call: Call) -> None:
        """A call that is not back yet."""
        vfork = call.name == "vfork"
        self.line(
            call, call.start, "(waiting for child to exit()/exec()...)" if vfork else "(sleeping...)", 4
        )

    def done(self, call: Call) -> None:
        """A call that returned; exits are printed as they begin, and have no result."""
        if call.name in ("exit", "exit_group"):
            self.line(call, call.end or 0, "")
        elif call.name == "execve":
            self.execve(call)
        elif call.unknown:
            return
        else:
            self.line(call, call.end or 0, self.result(call))
            self.extras(call)

    def execve(self, call: Call) -> None:
        """A successful exec: `argc`, and with -a -e the lists, wrapped near 63 columns."""
        argv, envp = call.args[1][1], call.args[2][1]
        words, prefix = self.words(call), self.prefix(call.thread)
        self.out.append(
            f"{prefix}{self.stamp(call.thread, call.end or 0)}{words}  argc = {len(argv.items)}\n"
        )
        for title, items in (
            ((" argv:", argv.items), (" envp:", envp.items)) if self.options.arguments else ()
        ):
            line = title
            for item in items:
                word = item.decode()
                if len(line) + len(word) < 63:
                    line += " " + word
                else:
                    self.out.append(prefix + line + "\n")
                    line = "  " + word
            self.out.append(prefix + line + "\n")

    def extras(self, call: Call) -> None:
        """-r all -w all: 32 bytes per line, if more than the 12 in the call; -v all: structures."""
        prefix = self.prefix(call.thread)
        for _, value in call.args:
            if (
                isinstance(value, Data)
                and self.options.dumps
                and len(value.data) > 12
                and call.name in DUMPED
            ):
                for at in range(0, len(value.data), 32):
                    self.out.append(f"{prefix}  {shown_bytes(value.data[at : at + 32])}\n")
            elif isinstance(value, Stat) and self.options.verbose:
                self.out.append(f"{prefix}    d=0x00540002 i=7  m=0100644 l=1  u=0  g=0 sz={value.size}\n")
                self.out.append(f"{prefix}\tmt = Nov 14 22:13:20 UTC 2023  [ 1700000000.000000000 ]\n")

    def note(self, note: Note) -> None:
        """Signals, the child's side of fork and lwp_create."""
        prefix = self.prefix(note.thread)
        if note.sort == "signal" and note.text.startswith("--- SIG"):
            name = note.text.split()[1].replace("SIGCHLD", "SIGCLD")
            self.out.append(
                f"{prefix}{self.stamp(note.thread, note.time)}    Received signal #18, {name} [default]\n"
            )
            self.out.append(f"{prefix}      siginfo: {name} CLD_EXITED pid=1 status=0x0000\n")
        elif note.sort == "gone" and "killed" in note.text:
            self.out.append(f"{prefix}\t*** process killed ***\n")
        elif note.sort == "attached":
            child = next(t for t in self.system.threads if t.tid == int(note.text))
            stamp = self.stamp(child, note.time)
            if child.process is note.thread.process:
                words = "lwp_create()\t(returning as new lwp ...)\t\t= 0"
            else:
                born = next(
                    c
                    for c in self.system.calls
                    if c.result == child.tid and c.returns == "pid" and c.name in ("clone", "vfork")
                )
                name = "vforkx(0)" if born.name == "vfork" else "forkx(0)\t"
                words = f"{name}\t(returning as child ...)\t= {note.thread.process.pid}"
            self.out.append(f"{self.prefix(child)}{stamp}{words}\n")

    # Parts of a call

    def words(self, call: Call, asleep: bool = False) -> str:
        """Name and arguments; what is read is not known before the return."""
        name = named(call, self.options)
        values = [Pointer(0) if asleep and isinstance(value, Data) else value for _, value in call.args]
        match call.name:
            case "openat" | "newfstatat" if self.options.old and isinstance(values[0], Here):
                values = values[1:4]
            case "pipe2" | "exit":
                values = []
            case "clone" | "vfork":
                return f"{name}(0)"
            case "clone3":
                return "lwp_create(0x08047A10, LWP_DETACHED|LWP_SUSPENDED, 0x08047A0C)"
            case "wait4":
                return f"waitid(P_PID, {values[0].number}, 0x08047B50, WEXITED|WTRAPPED)"
            case "dup" | "dup2":
                command = f"F_DUP2FD, {values[1].number}" if call.name == "dup2" else "F_DUPFD, 0"
                return f"fcntl({values[0].number}, {command})"
            case "socket":
                return 'so_socket(PF_INET, SOCK_STREAM, IPPROTO_IP, "", SOV_DEFAULT)'
            case "connect":
                return f"connect({values[0].number}, 0x08047C00, 16, SOV_DEFAULT)"
            case "sendto" | "recvfrom":
                values = values[:4]
        return f"{name}({', '.join(self.value(call, value) for value in values)})"

    def value(self, call: Call, value: object) -> str:
        """An argument."""
        match value:
            case PathName(name):
                return path(name)
            case Data(data) if data and not (self.options.dumps and len(data) > 12):
                return f'"{shown_bytes(data[:12])}"' + (".." if len(data) > 12 else "")
            case Fd(number) | Pid(number):
                return str(number)
            case Word("NULL"):
                return "0x00000000"
            case Data() | Vector() | Stat() | Entries() | Strings() | Environment() | Pointer():
                return "0x08047A3C"
        return printed(value, StraceStyle())

    def result(self, call: Call) -> str:
        """`= N`, `= N [M]` of pipe, `Err#N NAME`."""
        if call.error:
            return f"Err#{ERRORS[call.error]} {call.error}"
        if call.name == "pipe2":
            pair = call.args[0][1]
            return f"= {pair.first.number} [{pair.second.number}]"
        if call.name == "clone3":
            child = next(t for t in self.system.threads if t.tid == call.result)
            return f"= {lwp(self.system, child)}"
        if call.returns == "hex":
            return f"= 0x{call.result:08X}"
        return f"= {0 if call.name == 'wait4' else call.result}"
