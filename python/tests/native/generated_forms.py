"""The forms of strace and truss logs that are tried: all options alone, a sample of their combinations, and the plots."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import truss_text
from generated_plots import PLOTS
from generated_system import EPOCH
from sampling import sampled
from strace_text import Options

MIDNIGHT = EPOCH // 86_400_000_000_000 * 86_400_000_000_000 + 86_400_000_000_000 - 10_000_000
FULL = Options(wall="unix", took=6)
SINGLES = {
    "plain": Options(), "none": Options("none"), "stderr": Options("stderr"), "attached": Options("stderr", attached=True),
    "separate": Options("separate"), "comm": Options(comm=True), "comm-stderr": Options("stderr", comm=True),
    "t": Options(wall="time", digits=0), "t-ms": Options(wall="time", digits=3), "tt": Options(wall="time"),
    "t-ns": Options(wall="time", digits=9), "ttt": Options(wall="unix"), "ttt-s": Options(wall="unix", digits=0),
    "ttt-ms": Options(wall="unix", digits=3), "ttt-ns": Options(wall="unix", digits=9), "r": Options(relative=6),
    "r-s": Options(relative=0), "r-ms": Options(relative=3), "r-ns": Options(relative=9), "tt-r": Options(wall="time", relative=6),
    "t-r": Options(wall="time", digits=0, relative=9), "ttt-r": Options(wall="unix", relative=6), "T": Options(took=6),
    "T-s": Options(took=0), "T-ms": Options(took=3), "T-ns": Options(took=9), "n": Options(numbers=True), "i": Options(pointer=True),
    "n-i-tt": Options(numbers=True, pointer=True, wall="time"), "k": Options(frames=1), "kk": Options(frames=2), "y": Options(tags=1),
    "yy": Options(tags=2), "x": Options(hex=1), "xx": Options(hex=2), "x-y": Options(hex=1, tags=1), "xx-y": Options(hex=2, tags=1),
    "s0": Options(length=0), "s8": Options(length=8), "s4096": Options(length=4096), "v": Options(verbose=True),
    "C": Options(table=True), "z": Options(only="z"), "Z": Options(only="Z"), "z-ttt": Options(only="z", wall="unix", took=6),
    "Z-y": Options(only="Z", tags=1), "raw": Options(raw=True), "dump": Options(dump=True), "color": Options(color=True),
    "color-T": Options(color=True, took=6, tags=1, wall="unix"), "N": Options(names=True), "N-y": Options(names=True, tags=1),
    "old": Options(old=True), "old-y": Options(old=True, tags=1), "32bit": Options(bits32=True), "32bit-none": Options("none", bits32=True), "full": FULL,
    "full-y": replace(FULL, tags=1), "separate-full": replace(FULL, pids="separate"), "none-full": replace(FULL, pids="none"),
    "separate-tt-y": Options("separate", wall="time", tags=1, took=9), "separate-ttt-s": Options("separate", wall="unix", digits=0, tags=1), "old-xx-y": Options(old=True, hex=2, tags=1),
    "separate-y": Options("separate", tags=1), "separate-r": Options("separate", relative=6, took=6),
}  # fmt: skip
AXES = {
    "pids": ["file", "stderr", "separate", "none"], "comm": [False, True], "wall": ["", "time", "unix"], "digits": [0, 3, 6, 9],
    "relative": [None, 0, 6, 9], "took": [None, 0, 3, 6, 9], "numbers": [False, True], "pointer": [False, True], "frames": [0, 1, 2],
    "tags": [0, 1, 2], "hex": [0, 1, 2], "length": [32, 0, 4096], "verbose": [False, True], "table": [False, True],
    "only": ["", "z"], "raw": [False, True], "dump": [False, True], "style": ["", "color", "names", "old", "bits32"],
}  # fmt: skip


def options_of(choice: dict) -> Options:
    """A set of options that strace would take, from one value per axis."""
    choice = dict(choice)
    style = choice.pop("style")
    if choice["pids"] in ("none", "separate"):
        choice["comm"] = False
    if choice["only"] or choice["pids"] == "separate":
        choice["relative"] = None
    if choice["only"]:
        choice["table"] = False
    return Options(**choice, **({style: True} if style else {}))


def combinations(count: int) -> list[Options]:
    """Sets of options that have nearly all pairs of values among them."""
    random, seen, chosen = Random(1), set(), []
    for _ in range(count):
        candidates = [{axis: random.choice(values) for axis, values in AXES.items()} for _ in range(30)]
        best = max(candidates, key=lambda choice: len(pairs(choice) - seen))
        seen |= pairs(best)
        chosen.append(options_of(best))
    return chosen


def pairs(choice: dict) -> set:
    """All pairs of (axis, value)."""
    items = list(choice.items())
    return {(a, b) for index, a in enumerate(items) for b in items[:index]}


@dataclass(frozen=True)
class Case:
    """A story in one form."""

    id: str
    options: Options
    seed: int = 1
    plots: tuple[str, ...] = ()
    begin: int = EPOCH


def cases() -> list[Case]:
    """All that is tried."""
    found = [Case(name, options, seed) for seed, (name, options) in enumerate(SINGLES.items())]
    found += [Case(f"mix{n}", options, 100 + n) for n, options in enumerate(combinations(sampled(10, 60)))]
    for number, name in enumerate(PLOTS):
        forms = [
            Case(f"{name}-full", FULL, 7, (name,)),
            Case(f"{name}-y", replace(FULL, tags=1), 8, (name,)),
            Case(f"{name}-separate", replace(FULL, pids="separate"), 9, (name,)),
            Case(f"{name}-stderr", Options("stderr", relative=9, took=9), 10, (name,)),
        ]
        # Few: one of the forms by turns.
        found += sampled([forms[number % len(forms)]], forms)
    for name in ("restart", "not-restarted", "killed"):
        found.append(Case(f"{name}-z", replace(FULL, only="z"), 11, (name,)))
        found.append(Case(f"{name}-Z", replace(FULL, only="Z", tags=1), 12, (name,)))
        found.append(Case(f"{name}-N", Options(names=True), 13, (name,)))
        found.append(Case(f"{name}-old", Options(old=True), 14, (name,)))
    found.append(Case("midnight-tt", Options(wall="time"), 15, begin=MIDNIGHT))
    found.append(Case("midnight-separate", Options("separate", wall="time"), 16, begin=MIDNIGHT))
    return found


def truss_cases() -> dict[str, tuple[int, truss_text.Options]]:
    """Seed and options of the truss logs."""
    options = {
        "plain": truss_text.Options(lwp=False), "l": truss_text.Options(), "d": truss_text.Options("d"), "D": truss_text.Options("D"),
        "E": truss_text.Options("E"), "dDE": truss_text.Options("dDE"), "ae": truss_text.Options(arguments=True),
        "v": truss_text.Options(verbose=True), "rw": truss_text.Options(dumps=True),
        "all": truss_text.Options("dDE", arguments=True, dumps=True, verbose=True),
    }  # fmt: skip
    return {name: (200 + number, chosen) for number, (name, chosen) in enumerate(options.items())}
