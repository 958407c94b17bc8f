"""Kills a recorder, its tracer, its parent or its command at a random moment, and judges what is left.

One trial: record a program that counts what it does; when the victim is there, wait for a moment that follows from
the trial's number, and send SIGKILL. States of a trial: *started* -> *the victim is there* -> *killed*, or the victim
ended before -> *over*: no process of the trial is left, or the time is up -> *judged*.

Other recorders may run on the machine: a process is the trial's if the trial's folder stands in its command line.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sysdock.library import Library
from sysdock.recording import Recording, connect

PROGRAM = Path(__file__).resolve().parents[3] / "testdata" / "programs" / "counter.c"
RECORD = 16
COUNT = 300
# Behind each record [ns]: the command takes some 0.3 s, below strace twice that.
PAUSE = 1_000_000
STATUS = 37
# For the command, and for the processes that wait for it [s].
PATIENCE = 20.0
# In which strace makes copies of itself, one of which becomes the command [s].
START = 0.004
# For what is to go by itself once the command has ended, on a busy machine [s].
GRACE = 10.0
# Longer than a process is without a command line [s].
EXECUTING = 0.03
OWN = ("sysdock-native", "sysdock-keeper", "sysdock-witness", "strace")


@dataclass(frozen=True)
class Kind:
    """Who is killed below which recorder."""

    recorder: str
    victim: str
    options: tuple[str, ...] = ()
    # Within the first milliseconds of strace.
    early: bool = False

    @property
    def way(self) -> str:
        """The recorder and its options, in words."""
        return " ".join([self.recorder, *self.options])

    @property
    def name(self) -> str:
        """As the command line takes it."""
        return f"{self.way}: {self.victim}{' at the start' if self.early else ''}"


KINDS = [
    Kind("kernel", "recorder"),
    Kind("kernel", "parent"),
    Kind("kernel", "command"),
    Kind("kernel", "recorder", ("--no-loss",)),
    Kind("strace", "recorder"),
    Kind("strace", "tracer"),
    Kind("strace", "parent"),
    Kind("strace", "command"),
    Kind("strace", "recorder", early=True),
    Kind("strace", "tracer", early=True),
]


@dataclass
class Trial:
    """One recording, the kill, and what was found out about both."""

    kind: Kind
    number: int
    folder: Path
    # `sysdock run` stands above the recorder.
    with_parent: bool
    process: subprocess.Popen = field(init=False)
    recorders: set[int] = field(default_factory=set)
    killed: bool = False
    # No word of the command's end was there right after the kill.
    before_its_end: bool = False
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)

    @property
    def out(self) -> Path:
        """The recording."""
        return self.folder / "rec"

    @property
    def file(self) -> Path:
        """What the command writes."""
        return self.folder / "file"

    @property
    def done(self) -> Path:
        """The command's last word."""
        return self.folder / "file.done"

    @property
    def started(self) -> bool:
        """Whether the command ever ran."""
        return self.file.exists()

    @property
    def records(self) -> int:
        """How many the command wrote."""
        return self.file.stat().st_size // RECORD if self.started else 0

    def killed_is(self, *victims: str) -> bool:
        """Whether one of these was killed while it ran."""
        return self.killed and self.kind.victim in victims

    def expect(self, holds: object, why: str) -> None:
        """What must hold."""
        if not holds:
            self.faults.append(why)


class Kills:
    """Runs trials; the times that processes usually live are measured once for each way to record."""

    def __init__(self, native: Path, folder: Path) -> None:
        self.native = native
        self.folder = folder
        self.counter = folder / "counter"
        subprocess.run(["gcc", "-O1", "-o", self.counter, PROGRAM], check=True)
        self._lifetimes: dict[str, dict[str, float]] = {}

    def run(self, kind: Kind, number: int) -> Trial:
        """One trial, judged. Every other one has a parent above the recorder; its folder stays if a fault was found."""
        moment = random.Random(f"{kind.name} {number}").uniform(0, self._most(kind))
        trial = self._start(kind, number, kind.victim == "parent" or number % 2 == 0)
        try:
            victim = self._wait_for_victim(trial)
            if victim is not None:
                _wait_for_end(victim, moment)
                _kill(trial, victim)
                os.close(victim)
        finally:
            # Also where the user ends us.
            began = time.monotonic()
            _wait_until_over(trial)
            trial.seconds = time.monotonic() - began
        _judge(trial, self.native)
        if not trial.faults:
            remove(trial.folder)
        return trial

    def _start(self, kind: Kind, number: int, with_parent: bool) -> Trial:
        folder = self.folder / f"{kind.name.replace(': ', '-').replace(' ', '')}-{number}"
        trial = Trial(kind, number, folder, with_parent)
        (trial.folder / "tmp").mkdir(parents=True)
        verb = [sys.executable, "-m", "sysdock", "run"] if with_parent else [self.native, "record"]
        options = ["--with", kind.recorder, *kind.options, "-o", trial.out]
        command = [self.counter, trial.file, str(COUNT), str(PAUSE), str(STATUS)]
        with open(trial.folder / "said", "wb") as said:
            trial.process = subprocess.Popen(
                [*verb, *options, "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=os.environ | {"TMPDIR": str(trial.folder / "tmp"), "SYSDOCK_NATIVE": str(self.native)},
            )
        return trial

    def _most(self, kind: Kind) -> float:
        """From when the victim can be seen until it ends, where nobody kills it [s]."""
        if kind.early:
            return START
        if kind.way not in self._lifetimes:
            # What is not in memory yet makes the first run a long one.
            runs = [self._measure(kind) for _ in range(2)]
            self._lifetimes[kind.way] = {role: min(run[role] for run in runs) for role in runs[0]}
        return self._lifetimes[kind.way][kind.victim]

    def _measure(self, kind: Kind) -> dict[str, float]:
        trial = self._start(Kind(kind.recorder, "nobody", kind.options), 0, True)
        lives: dict[str, tuple[float, float]] = {}
        while trial.process.poll() is None:
            now = time.monotonic()
            for role, _ in _roles(trial, self.counter.name):
                lives[role] = (lives.get(role, (now,))[0], now)
            time.sleep(0.01)
        _wait_until_over(trial)
        _judge(trial, self.native)
        if trial.faults:
            raise RuntimeError(f"{kind.way}, without a kill: {'; '.join(trial.faults)}")
        remove(trial.folder)
        return {role: end - begin for role, (begin, end) in lives.items()}

    def _wait_for_victim(self, trial: Trial) -> int | None:
        """A descriptor of the victim's process; None if all was over before it was seen."""
        first = "tracer" if trial.kind.early else trial.kind.victim
        while trial.process.poll() is None:
            there = dict(_roles(trial, self.counter.name))
            if first in there:
                with contextlib.suppress(ProcessLookupError):
                    return os.pidfd_open(there[trial.kind.victim])
            time.sleep(0.001)
        return None


def remove(folder: Path) -> None:
    """A folder of ours, with all in it."""
    subprocess.run(["rm", "-rf", folder], check=True)


def _roles(trial: Trial, command: str) -> Iterator[tuple[str, int]]:
    """Who is there: roles and process numbers."""
    recorder: int | None = trial.process.pid
    if trial.with_parent:
        yield "parent", trial.process.pid
        recorder = _child(trial.process.pid, "sysdock-native")
    if recorder is None:
        return
    trial.recorders.add(recorder)
    yield "recorder", recorder
    if trial.kind.recorder == "strace":
        # The recorder asks `strace --version` first.
        tracer = _child(recorder, "strace", lambda pid: _is_of(trial, pid))
        if tracer is not None:
            yield "tracer", tracer
        found = None if tracer is None else _child(tracer, command)
    else:
        found = _child(recorder, command) or _waiting_command(recorder)
    if found is not None:
        yield "command", found


def _waiting_command(recorder: int) -> int | None:
    """The process that is to become the command. It is a copy of the recorder, as others are, but alone in the group."""

    def is_in_group(pid: int) -> bool:
        return f"/sysdock-{recorder}\n" in Path(f"/proc/{pid}/cgroup").read_text()

    return _child(recorder, "sysdock-native", is_in_group)


def _child(parent: int, name: str, fits: Callable[[int], bool] = lambda _: True) -> int | None:
    """The first child with this name that fits."""
    for pid in _children(parent):
        with contextlib.suppress(OSError):
            if _name(pid) == name and fits(pid):
                return pid
    return None


def _children(parent: int) -> Iterator[int]:
    """Children of a process, which may end meanwhile, as each of its threads may."""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{parent}/task"):
            with contextlib.suppress(OSError):
                yield from map(int, Path(f"/proc/{parent}/task/{thread}/children").read_text().split())


def _is_of(trial: Trial, pid: int) -> bool:
    """Whether the trial's folder stands in its command line."""
    return os.fsencode(trial.folder) in Path(f"/proc/{pid}/cmdline").read_bytes()


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _wait_for_end(process: int, seconds: float) -> bool:
    """Whether it ended in this time."""
    waiting = select.poll()
    waiting.register(process, select.POLLIN)
    return bool(waiting.poll(seconds * 1000))


def _kill(trial: Trial, victim: int) -> None:
    if _wait_for_end(victim, 0):
        return
    signal.pidfd_send_signal(victim, signal.SIGKILL)
    trial.before_its_end = not trial.done.exists()
    # One that was about to end had its status by then, and ends with that.
    trial.killed = trial.kind.victim != "parent" or trial.process.wait() == -signal.SIGKILL


def _wait_until_over(trial: Trial) -> None:
    """Until no process of the trial is left; those that stay too long are a fault, and are ended."""
    began = time.monotonic()
    seen = began
    while left := _left(trial):
        now = time.monotonic()
        rightful = {pid for pid, name in left.items() if _may_stay(trial, pid, name)}
        seen = now if rightful else seen
        if now > min(began + PATIENCE, seen + GRACE):
            names = ", ".join(f"{name} {_state(pid)}" for pid, name in left.items())
            trial.faults.append(f"left after {now - began:.0f} s: {names}")
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            break
        time.sleep(0.005)
    trial.process.wait()
    for group in _groups(trial):
        trial.expect(_goes(group), f"the control group {group} is left")


def _may_stay(trial: Trial, pid: int, name: str) -> bool:
    """Whether a process is not to end before the command does, or before the tables are made."""
    if name not in OWN:
        return True
    orphaned = trial.killed_is("recorder")
    return not orphaned and (pid in trial.recorders or name == "strace")


def _left(trial: Trial) -> dict[int, str]:
    """Processes of the trial: number, name. One that executes a program has no command line for a moment."""
    found = _seen(trial)
    if not found:
        time.sleep(EXECUTING)
        found = _seen(trial)
    return found


def _seen(trial: Trial) -> dict[int, str]:
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if _is_of(trial, int(entry.name)):
                    found[int(entry.name)] = _name(int(entry.name))
    trial.recorders |= {pid for pid, name in found.items() if name == "sysdock-native"}
    return found


def _state(pid: int) -> str:
    """One letter of the kernel's, such as T for a process that is stopped."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return "gone"


@functools.cache
def _group_mounts() -> list[Path]:
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [Path(mount[4]) for mount in mounts if "cgroup2" in mount]


def _groups(trial: Trial) -> list[Path]:
    """Control groups of the trial's recorders."""
    names = [f"sysdock-{pid}" for pid in trial.recorders]
    return [group for mount in _group_mounts() for name in names for group in mount.rglob(name)]


def _goes(group: Path) -> bool:
    deadline = time.monotonic() + GRACE
    while group.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return not group.exists()


def _judge(trial: Trial, native: Path) -> None:
    """Adds what is wrong to the trial's faults."""
    _judge_command(trial)
    _judge_status(trial)
    left = [path.name for path in (trial.folder / "tmp").iterdir()]
    # A Python program that is killed cannot remove the folder into which its engine would have written.
    trial.expect(not left or trial.killed_is("parent"), f"left in the temporary folder: {left}")
    if (trial.out / "spool").exists():
        _salvage(trial, native)
    if (trial.out / "recording.json").exists():
        _judge_recording(trial)
    else:
        # If a tracer is killed before it prints anything, nothing is recorded.
        missing = trial.started and not trial.killed_is("tracer")
        trial.expect(not missing, "the command ran, and there is no recording.json")


def _judge_command(trial: Trial) -> None:
    if trial.killed_is("command") or not trial.started:
        return
    said = trial.done.read_text() if trial.done.exists() else None
    trial.expect(said == f"{COUNT}\n", f"the last word of the command is {said!r}")
    trial.expect(trial.records == COUNT, f"the command wrote {trial.records} records")


def _judge_status(trial: Trial) -> None:
    """The status of what was started: the command's, unless a kill ended it before."""
    status = trial.process.returncode
    allowed = {STATUS}
    if trial.killed_is("recorder", "parent", "command"):
        # One that had its status already ends with that.
        allowed = {-signal.SIGKILL} if trial.before_its_end else {-signal.SIGKILL, STATUS}
    if trial.killed_is("tracer") and not trial.started:
        # There is no command whose status it could be.
        allowed = {2}
    trial.expect(status in allowed, f"status {status}, not {allowed}: {_said(trial)}")


def _said(trial: Trial) -> str:
    return (trial.folder / "said").read_text(errors="replace").strip()[-300:]


def _salvage(trial: Trial, native: Path) -> None:
    """`sysdock-native salvage` brings back as many events as it says before."""
    trial.expect(trial.killed_is("recorder"), "a spool is left")
    waiting = _native(trial, native, "salvage", "--dry-run", trial.out)
    _native(trial, native, "salvage", trial.out)
    trial.expect(not (trial.out / "spool").exists(), "salvage leaves the spool")
    captures = _read(trial).get("captures", [{}])
    found = sum(capture.get("total", 0) for capture in captures)
    trial.expect(f"{found}" == waiting, f"salvage brought back {found} events of {waiting}")


def _native(trial: Trial, native: Path, *words: str | Path) -> str:
    done = subprocess.run([native, *words], capture_output=True, text=True, timeout=600)
    trial.expect(
        (done.returncode, done.stderr) == (0, ""), f"{words[0]}: status {done.returncode}: {done.stderr}"
    )
    return done.stdout.strip()


def _read(trial: Trial) -> dict:
    try:
        return json.loads((trial.out / "recording.json").read_text())
    except (OSError, ValueError) as error:
        trial.faults.append(f"recording.json: {error}")
        return {}


def _judge_recording(trial: Trial) -> None:
    stated = _read(trial)
    if not stated:
        return
    complete = stated["complete"]
    broken_off = trial.killed_is("recorder", "tracer") and trial.before_its_end
    trial.expect(not (complete and broken_off), "complete, though it was broken off")
    # A command that is killed before its first call is not there to be complete.
    silent = trial.killed_is("command") and stated["tables"]["calls"]["rows"] == 0
    trial.expect(complete or silent or trial.killed_is("recorder", "tracer"), "incomplete")
    if complete:
        by_the_kill = trial.killed_is("command") and trial.process.returncode != STATUS
        end = (None, "SIGKILL") if by_the_kill else (STATUS, None)
        ended = (stated["exit_code"], stated["exit_signal"])
        trial.expect(ended == end, f"the recording says that the command ended with {ended}, not {end}")
    found, twice = _counted(trial)
    # strace tells of a call when it ends, and one that a kill cuts off does not.
    fewest = trial.records - int(trial.kind.recorder == "strace" and trial.killed_is("command"))
    fewest = fewest if complete else 0
    trial.expect(
        fewest <= found <= trial.records, f"{found} records of {trial.records}, complete: {complete}"
    )
    trial.expect(twice == 0, f"{twice} records are there twice")


def _counted(trial: Trial) -> tuple[int, int]:
    """Writes of records in the recording, and how many of them are there more than once."""
    if not _read(trial)["tables"].get("calls", {}).get("parts"):
        return 0, 0
    sql = f"""SELECT count(*), count(*) - count(DISTINCT offset_bytes) FROM calls
        WHERE call = 'pwrite64' AND path = '{trial.file}' AND transferred_bytes = {RECORD}"""
    return connect(Recording.open(trial.out), Library(), ["calls"]).execute(sql).fetchone()


@dataclass
class Tally:
    """What came of the trials of a kind."""

    trials: int = 0
    killed: int = 0
    failures: int = 0
    longest: float = 0.0

    def add(self, trial: Trial) -> None:
        """Counts one."""
        self.trials += 1
        self.killed += trial.killed
        self.failures += bool(trial.faults)
        self.longest = max(self.longest, trial.seconds)


def run_all(kills: Kills, tallies: dict[Kind, Tally], numbers: range, say: Callable[[str], object]) -> None:
    """Trials of all kinds by turns; says what is wrong."""
    for number in numbers:
        for kind, tally in tallies.items():
            trial = kills.run(kind, number)
            tally.add(trial)
            if trial.faults:
                say(f"{kind.name}, trial {number}: {'; '.join(trial.faults)} ({trial.folder})")
