"""Runs that are disturbed on purpose, and runs that are not: which of them the engine rejects."""

from __future__ import annotations

import glob
import os
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from goals import Progress, Result, at_least, at_most, share, until_interrupted
from interference import running
from sysdock.experiment.one_run import run_once
from sysdock.experiment.state import Journal, State
from sysdock.experiment.tools import run_tool
from sysdock.library import Reject, Workload

# About 0.3 s alone: a share of the CPUs can be read from ticks of 10 ms.
_LOOP = ("perl", "-e", "for ($i = 0; $i < 6000000; $i++) {}")
_SHORT = ("perl", "-e", "for ($i = 0; $i < 200000; $i++) {}")
_MEMORY = ("perl", "-e", '$x = "x" x (96 << 20); substr($x, $_ << 12, 1) = "y" for 0 .. (96 << 8) - 1')
_LIMIT_BYTES = 64 << 20
_SWAP_BYTES = 512 << 20
_CPUS = os.cpu_count() or 1
# What each hog takes of its CPU, by what they are called. The rule rejects from 10 % of all CPUs on.
HOGS: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "a CPU hog that takes 15 % of one CPU": ("0.15",),
    "a CPU hog that takes half of one CPU": ("0.5",),
    "CPU hogs on half of the CPUs": ("1",) * max(1, _CPUS // 2),
    "CPU hogs on all CPUs": ("1",) * _CPUS,
}
_OUGHT = ("CPU hogs on half of the CPUs", "CPU hogs on all CPUs")
_QUIET_PART = 0.02
_QUIET_FORKS = 12
_SWAPS = 20
_NOTHING = Reject(swap=False, throttled=False, foreign_cpu=None, steal=None)
# Exit status of a child whose run was rejected.
_REJECTED = 3


def rejects(number: int, seed: int, folder: Path, progress: Progress, swaps: bool = True) -> Iterator[Result]:
    """`number` runs without a disturbance, and half as many with each. `swaps`: also where the machine swaps."""
    yield from _hogs(number, seed, folder, progress)
    with running(*HOGS["CPU hogs on all CPUs"], folder=folder):
        short = [_is_rejected(_SHORT, folder, Reject()) for _ in range(max(1, number // 2))]
    words = "CPU hogs on all CPUs, runs of 10 ms: too short for ticks"
    yield Result("rejects", words, share(sum(short), len(short)), sum(short) / len(short))
    yield _throttled(max(1, number // 4), folder, progress)
    if swaps:
        yield _swapped(min(_SWAPS, max(1, number // 4)), folder, progress)
    words = "the host of a virtual machine takes the CPU (steal): cannot be made from inside"
    yield Result("rejects", words, "not measured", None)


def _hogs(number: int, seed: int, folder: Path, progress: Progress) -> Iterator[Result]:
    drawn = [kind for kind in HOGS for _ in range(number if kind == "nothing" else max(1, number // 2))]
    random.Random(f"{seed}/rejects").shuffle(drawn)
    # Whether it was rejected, and whether the machine was quiet but for what was injected.
    runs: dict[str, list[tuple[bool, bool]]] = {kind: [] for kind in HOGS}
    with until_interrupted() as interrupts:
        for done, kind in enumerate(drawn, 1):
            with running(*HOGS[kind], folder=folder) as hogs:
                before = _others(hogs)
                is_rejected = _is_rejected(_LOOP, folder, Reject())
                runs[kind].append((is_rejected, before.is_quiet_until(_others(hogs))))
            progress(f"rejects: run {done} of {len(drawn)}")
    for kind, each in runs.items():
        flags = [is_rejected for is_rejected, is_quiet in each if is_quiet]
        details: dict[str, str | float] = {
            "with the work of others": share(sum(is_rejected for is_rejected, _ in each), len(each))
        }
        if kind in _OUGHT:
            yield at_least("rejects", kind, sum(flags), len(flags), 0.95, **details)
        elif kind == "nothing":
            words = f"nothing; others used less than {100 * _QUIET_PART:g} % of the CPUs"
            yield at_most("rejects", words, sum(flags), len(flags), 0.01, **details)
        else:
            yield Result("rejects", kind, share(sum(flags), len(flags)), None, details=details)
    if interrupts:
        raise interrupts[0]


def _is_rejected(words: tuple[str, ...], folder: Path, reject: Reject) -> bool:
    workload = Workload("command", "", "", words)
    return run_once(workload, {}, folder, devices=(), reject=reject).reason is not None


@dataclass(frozen=True)
class Others:
    """CPU time [ns] of each thread that is neither ours nor a hog, when it was read, and how many processes and threads were begun so far."""

    at: float
    spent: dict[str, int]
    begun: int

    def is_quiet_until(self, after: Others) -> bool:
        """Whether they did next to nothing, by other counters than the engine's; what a thread used that has ended is not known."""
        used = sum(spent - self.spent.get(path, 0) for path, spent in after.spent.items())
        capacity = (after.at - self.at) * 1e9 * _CPUS
        is_known = self.spent.keys() <= after.spent.keys() and after.begun - self.begun <= _QUIET_FORKS
        return is_known and used < _QUIET_PART * capacity


def _others(hogs: Sequence[int]) -> Others:
    own = {str(os.getpid()), *map(str, hogs)}
    spent = {}
    # Not by pathlib, which raises where a process ends meanwhile.
    for path in glob.iglob("/proc/[0-9]*/task/[0-9]*/schedstat"):
        if path.split("/")[2] not in own:
            with suppress(OSError, IndexError):
                spent[path] = int(Path(path).read_text().split()[0])
    begun = next(
        int(line.split()[1])
        for line in Path("/proc/stat").read_text().splitlines()
        if line.startswith("processes ")
    )
    return Others(time.monotonic(), spent, begun)


def _throttled(number: int, folder: Path, progress: Progress) -> Result:
    """Runs in a group that may use a fifth of one CPU."""
    # Only by this rule, as others may use the CPUs meanwhile.
    throttled = replace(_NOTHING, throttled=True)
    settings = {"cgroup:sysdock-bench-throttled/cpu.max": "20000 100000"}
    return _in_group("a CPU limit of the control group", settings, _LOOP, number, folder, throttled, progress)


def _swapped(number: int, folder: Path, progress: Progress) -> Result:
    """Runs that need more memory than their group may have, with swap space for the rest."""
    swap = replace(_NOTHING, swap=True)
    settings = {"cgroup:sysdock-bench-swapped/memory.max": str(_LIMIT_BYTES)}
    with _swap_space(folder):
        return _in_group("swapping", settings, _MEMORY, number, folder, swap, progress)


def _in_group(
    what: str,
    settings: dict[str, str],
    words: tuple[str, ...],
    number: int,
    folder: Path,
    reject: Reject,
    progress: Progress,
) -> Result:
    journal = Journal.begin("tools/bench experiment")
    state = State(journal, folder / "state")
    try:
        state.apply(settings)
        (name,) = {key.partition(":")[2].partition("/")[0] for key in settings}
        entered = state.group_members(name)
        rejected = 0
        for done in range(1, number + 1):
            rejected += _is_rejected_in(entered, words, folder, reject)
            progress(f"rejects: {what}, run {done} of {number}")
    finally:
        if not state.undo():
            journal.close()
    return at_least("rejects", what, rejected, number, 0.95)


def _is_rejected_in(entered: list[Path], words: tuple[str, ...], folder: Path, reject: Reject) -> bool:
    """In a process of its own, which alone is in the group: who is in it is ended with the group."""
    if child := os.fork():
        return bool(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == _REJECTED)
    status = 1
    try:
        for file in entered:
            file.write_text(str(os.getpid()))
        status = _REJECTED if _is_rejected(words, folder, reject) else 0
    finally:
        os._exit(status)


@contextmanager
def _swap_space(folder: Path) -> Iterator[None]:
    path = folder / "swap"
    path.touch(0o600)
    # No holes are allowed in it.
    run_tool("dd", "if=/dev/zero", f"of={path}", "bs=1M", f"count={_SWAP_BYTES >> 20}")
    run_tool("mkswap", path)
    run_tool("swapon", path)
    try:
        yield
    finally:
        run_tool("swapoff", path)
        path.unlink()
