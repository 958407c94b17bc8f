"""Real runs with a cause injected on purpose: whether the engine names it, and whether it names anything where nothing was injected.

Only explain runs are made, as no verdict is asked for: blocks, their order, the recorder, profiles and causes are the engine's.
"""

from __future__ import annotations

import random
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from goals import Progress, Result, at_least
from sysdock.experiment.causes import REMAINDER, Cause, causes
from sysdock.experiment.explaining import profile, recorder
from sysdock.experiment.loop_device import loop_device, mounted
from sysdock.experiment.one_run import run_once
from sysdock.experiment.tools import run_tool
from sysdock.library import Library, Reject, Workload

BLOCKS = 16
# Runs of each unchanged command.
_CONTROL = 4 * BLOCKS
_HERE = Path(__file__).parent
_DEVICE_BYTES = 512 << 20
_INPUT_BYTES = 8 << 20
_ANY = Reject(swap=False, throttled=False, foreign_cpu=None, steal=None)
Items = dict[tuple[str, str], float]


@dataclass(frozen=True)
class Injected:
    """A command, the same with a cause, and what a right answer names: `wanted` is a pattern of `kind: name`.

    `mount`: options of the file system. `values`: files of the kernel, by the value with the cause.
    `cold`: the page cache is dropped before the run.
    """

    group: str
    what: str
    command: str
    caused: str
    wanted: str
    mount: str = ""
    values: dict[str, str] = field(default_factory=dict)
    cold: bool = False


def injections() -> Iterator[Injected]:
    """Six of each of ten groups."""
    yield from _of_calls()
    yield from _of_data()
    yield from _of_settings()
    yield from _of_programs()


def _of_calls() -> Iterator[Injected]:
    for syncs in (2, 3, 4, 8, 12, 16):
        base, more = "{victim} writes syncs=1", f"{{victim}} writes syncs={syncs}"
        yield Injected("extra fsync", f"{syncs} of 16 writes", base, more, "fsync|flush")
    names = ("getppid", "newfstatat", "lseek", "read", "umask", "access")
    for number, name in enumerate(names):
        base, more = "{victim} storm number=0", f"{{victim}} storm call={number} number=20000"
        yield Injected("system-call storm", name, base, more, rf": {name}\b")
    for part, size in [("writes", 8192), ("writes", 1024), ("writes", 128)]:
        base, more = f"{{victim}} {part} syncs=0", f"{{victim}} {part} syncs=0 size={size}"
        yield Injected("small I/O", f"{part} of {size} B", base, more, r"calls?: write\b|in write\b")
    for size in (8192, 1024, 128):
        base, more = "{victim} reads", f"{{victim}} reads size={size}"
        yield Injected("small I/O", f"reads of {size} B", base, more, r"calls?: read\b|in read\b")


def _of_data() -> Iterator[Injected]:
    for offset in (1, 100, 512, 1000, 2048, 4000):
        base, more = "{victim} overwrites", f"{{victim}} overwrites offset={offset}"
        wanted = "(requests|transferred): read|in pwrite64|call: pwrite64"
        yield Injected("alignment", f"{offset} B behind pages", base, more, wanted)
    cold = "(requests|transferred): read|disk|^fault"
    for words in ("reads", "reads size=4096", "maps", "reads check=0", "maps check=0", "reads size=1048576"):
        yield Injected("cache drop", words, f"{{victim}} {words}", f"{{victim}} {words}", cold, cold=True)


def _of_settings() -> Iterator[Injected]:
    disk = "(requests|transferred): (write|flush)|disk|fsync"
    for options in ("data=journal", "nobarrier", "sync"):
        for words in ("writes syncs=4", "creates"):
            command = f"{{victim}} {words}"
            yield Injected("mount option", f"{options}, {words}", command, command, disk, mount=options)
    written = r"(requests|transferred): write|in write\b|call: write\b"
    for limit in (262_144, 1 << 20, 4 << 20):
        for total in (32 << 20, 64 << 20):
            command = f"{{victim}} writes syncs=0 size=1048576 total={total}"
            values = {"/proc/sys/vm/dirty_bytes": str(limit)}
            what = f"{limit >> 10} KiB, {total >> 20} MiB written"
            yield Injected("dirty limit", what, command, command, written, values=values)


def _of_programs() -> Iterator[Injected]:
    for hot in ("parse", "check", "pack"):
        for percent in (5, 10):
            turns = 40_000_000
            base = f"{{victim}} functions {hot}={turns}"
            more = f"{{victim}} functions {hot}={turns * (100 + percent) // 100}"
            yield Injected("hot function", f"{hot} +{percent} %", base, more, rf"(function|stack): {hot}\b")
    held = "futex|lock|hold|nanosleep"
    for words in ("hold=40000", "hold=80000", "hold=160000", "sleep=50", "sleep=200", "threads=4 hold=60000"):
        threads = words.split()[0] if "threads" in words else "threads=2"
        yield Injected(
            "lock held longer", words, f"{{victim}} locks {threads}", f"{{victim}} locks {words}", held
        )
    collected = "gc|visit_|traverse|collect|referents|untrack"
    for kind in ("lists", "dicts", "objects"):
        for threshold in (700, 70):
            base, more = f"{{collected}} {kind} 0", f"{{collected}} {kind} {threshold}"
            yield Injected("garbage collection", f"{kind}, {threshold}", base, more, collected)


@dataclass
class _Bench:
    """Where runs are made: a file system on a loop device, in `data`."""

    folder: Path
    data: Path
    device: Path
    library: Library
    names: dict[str, str]
    mounted_with: str = ""

    def run(self, injected: Injected, is_caused: bool) -> Items | None:
        """The profile of one run; None where it failed."""
        self._mount(injected.mount if is_caused else "")
        if is_caused and injected.cold:
            run_tool("sync")
            Path("/proc/sys/vm/drop_caches").write_text("3")
        command = (injected.caused if is_caused else injected.command).format(**self.names)
        work = Workload("victim", "", "", ("sh", "-c", f"cd {self.data} && exec {command}"))
        recording = self.folder / "recording"
        values = injected.values if is_caused else {}
        before = {path: Path(path).read_text() for path in values}
        try:
            for path, value in values.items():
                Path(path).write_text(value)
            run = run_once(work, {}, self.folder, devices=(), reject=_ANY, under=recorder(recording))
        finally:
            for path, value in before.items():
                _put_back(Path(path), value)
        try:
            if run.reason is not None:
                print(f"{injected.what}: {run.reason}", file=sys.stderr)
                return None
            found = profile(recording, self.library, [str(self.device)], 1).items
        finally:
            shutil.rmtree(recording, ignore_errors=True)
        return {(item.kind, item.name): item.value for item in found}

    def _mount(self, options: str) -> None:
        if options != self.mounted_with:
            run_tool("umount", self.data)
            run_tool("mount", *(["-o", options] if options else []), self.device, self.data)
            self.mounted_with = options


def _put_back(path: Path, value: str) -> None:
    # A limit of 0 bytes means that the one in percent is in force, which then has its value again.
    if path.name == "dirty_bytes" and value.strip() == "0":
        (path.parent / "dirty_ratio").write_text("20")
    else:
        path.write_text(value)


def named(number: int, seed: int, folder: Path, progress: Progress) -> Iterator[Result]:
    """`number` injections, evenly from all groups, and comparisons of unchanged runs."""
    chosen = list(injections())
    chosen = chosen[:: max(1, len(chosen) // number)][:number]
    ranks: dict[str, list[int | None]] = {}
    with ExitStack() as stack:
        bench = _bench(stack, folder)
        for n, injected in enumerate(chosen, 1):
            progress(f"causes: {n} of {len(chosen)}, {injected.group}: {injected.what}")
            pairs = _pairs(bench, injected, seed + n, BLOCKS)
            found = causes(pairs)
            rank = _rank(injected, found)
            ranks.setdefault(injected.group, []).append(rank)
            if rank is None or rank > 1:
                first = ", ".join(f"{each.kind}: {each.name}" for each in found[:4])
                progress.clear()
                print(f"{injected.group}, {injected.what}: rank {rank}; {first}", file=sys.stderr)
        for group, some in ranks.items():
            yield _of_group(group, some)
        every = [rank for some in ranks.values() for rank in some]
        first, three = (sum(rank is not None and rank <= most for rank in every) for most in (1, 3))
        yield at_least("causes", "all: the cause comes first", first, len(every), 0.8)
        yield at_least("causes", "all: the cause is among the first three", three, len(every), 0.95)
        yield from _control(bench, number, seed, progress)


def _bench(stack: ExitStack, folder: Path) -> _Bench:
    victim = folder / "victim"
    run_tool("cc", "-O2", "-g", "-pthread", "-o", victim, _HERE / "victim.c")
    device = stack.enter_context(loop_device(folder / "image", _DEVICE_BYTES))
    run_tool("mkfs.ext4", "-q", device)
    data = stack.enter_context(mounted(device, folder / "data"))
    (data / "input").write_bytes(random.Random(1).randbytes(_INPUT_BYTES))
    names = {"victim": str(victim), "collected": f"{sys.executable} -SE {_HERE / 'collected.py'}"}
    return _Bench(folder, data, device, Library(), names)


def _pairs(bench: _Bench, injected: Injected, seed: int, blocks: int) -> list[tuple[Items, Items]]:
    drawn = random.Random(seed)
    pairs = []
    bench.run(injected, False)  # the first run of a program reads it from the disk
    for _ in range(blocks):
        found: dict[bool, Items | None] = {}
        for is_caused in drawn.sample([False, True], 2):
            found[is_caused] = bench.run(injected, is_caused)
        before, after = found[False], found[True]
        if before is not None and after is not None:
            pairs.append((before, after))
    return pairs


def _rank(injected: Injected, found: Sequence[Cause]) -> int | None:
    """The first place that names what was injected; None: nowhere."""
    for cause in found:
        if cause.kind != REMAINDER and re.search(
            injected.wanted, f"{cause.kind}: {cause.name}", re.IGNORECASE
        ):
            return cause.rank
    return None


def _of_group(group: str, ranks: Sequence[int | None]) -> Result:
    first = sum(rank == 1 for rank in ranks)
    result = at_least("causes", group, first, len(ranks), 0.8)
    words = ", ".join("-" if rank is None else str(rank) for rank in ranks)
    return replace(result, details={"ranks": words}, goal="", is_met=None)


def _control(bench: _Bench, number: int, seed: int, progress: Progress) -> Iterator[Result]:
    """Series of runs of unchanged commands, from which adjacent ones are compared under labels drawn anew."""
    commands = ("functions", "writes syncs=4", "locks", "creates", "reads")
    silent = compared = 0
    drawn = random.Random(seed)
    for words in commands:
        unchanged = Injected("control", words, f"{{victim}} {words}", f"{{victim}} {words}", "")
        runs: list[Items] = []
        for n in range(_CONTROL):
            progress(f"causes: control, {words}, run {n + 1} of {_CONTROL}")
            if (items := bench.run(unchanged, False)) is not None:
                runs.append(items)
        for _ in range(max(1, 4 * number)):
            start = drawn.randrange(max(1, len(runs) - 2 * BLOCKS + 1))
            some = runs[start : start + 2 * BLOCKS]
            pairs = [tuple(drawn.sample(some[n : n + 2], 2)) for n in range(0, len(some) - 1, 2)]
            compared += 1
            silent += len(causes([(pair[0], pair[1]) for pair in pairs])) == 1
    yield at_least("causes", "A/A: nothing is named", silent, compared, 0.99)
