"""Generated logs, whose totals are known: every form of log must give the same counts, bytes, times, paths and offsets.

The generator (generator.py) makes a story from a seed and prints it as strace would with each set of options. What the importer
cannot do yet stands in NOT_YET: a fix takes its line out, and the test of the rest passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from pathlib import Path

import pytest
import truss_text
from generated_forms import Case, cases, truss_cases
from generated_results import Result
from generated_system import COPIES, System, Totals, rows, totals
from generator import story
from strace_text import Options, shown, text

ALL = "lines calls paths offsets threads starts"


@dataclass(frozen=True)
class Gap:
    """What the importer cannot do yet, the test that fails for nothing else, and all that may fail for it."""

    reason: str
    witness: str
    aspects: str
    when: Callable[[Case], bool]


NOT_YET = [
    Gap("-z: vfork returns behind its child's calls, which find no descriptors", "z/paths", "paths", lambda c: c.options.only == "z" and not c.options.tags),
]  # fmt: skip


def seconds(case: Case) -> bool:
    return case.options.wall == "unix" and case.options.digits == 0


CASES = {case.id: case for case in cases()}
TRUSS_CASES = truss_cases()


@cache
def system_of(case: Case) -> System:
    return story(case.seed, case.plots, case.options.pids == "none", case.begin)


@lru_cache(maxsize=2)
def expected(case: Case) -> Totals:
    """The totals of what was printed."""
    return totals(rows(shown(case.options, system_of(case))), case.options.unit)


@pytest.fixture(scope="session")
def imported(native: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Case], Result]:
    """The recording of a case, imported once."""

    @lru_cache(maxsize=2)
    def run(case: Case) -> Result:
        return Result(native, tmp_path_factory.mktemp("generated"), text(case.options, system_of(case)))

    return run


def check_lines(case: Case, result: Result) -> None:
    """Every line is understood, and nothing is missing that is there."""
    stated = result.manifest
    assert (stated["lines_total"], stated["lines_understood"]) == (result.printed, result.printed)
    if not case.plots:
        assert stated["issues"] == {}


def check_calls(case: Case, result: Result) -> None:
    """Number, errors, bytes and time of each call."""
    wanted = dict(expected(case).calls)
    if case.options.bits32 and "lseek" in wanted:
        wanted["_llseek"] = wanted.pop("lseek")
    assert result.calls(case.options.unit is not None) == wanted


def check_paths(case: Case, result: Result) -> None:
    """Calls, bytes read, bytes written and time of each path."""
    options = case.options
    names = {call.name for call in shown(options, system_of(case)) if call.path is not None} - set(COPIES)
    assert result.paths(names | {"_llseek"}, options.unit is not None) == expected(case).paths


def check_offsets(case: Case, result: Result) -> None:
    """Offsets of transfers, per file, and which of them nobody can know."""
    wanted = expected(case)
    offsets, uncertain = result.offsets(), result.uncertain()
    if case.options.pids == "separate":
        # Files of a set hold times only: what lies closer than strace measures is uncertain too, and nothing else is wrong.
        certain = Counter((path, *pair) for path, pairs in offsets.items() for pair in pairs)
        assert certain <= Counter((path, *pair) for path, pairs in wanted.offsets.items() for pair in pairs)
        assert uncertain >= wanted.uncertain
        assert (
            certain.total() + uncertain.total()
            == sum(map(len, wanted.offsets.values())) + wanted.uncertain.total()
        )
        return
    assert offsets == {path: sorted(pairs, key=str) for path, pairs in wanted.offsets.items()}
    assert uncertain == wanted.uncertain


def check_threads(case: Case, result: Result) -> None:
    """Calls of each process and thread."""
    wanted = expected(case).threads
    assert result.threads() == ({(0, 0): sum(wanted.values())} if case.options.pids == "none" else wanted)


def check_starts(case: Case, result: Result) -> None:
    """When calls began: as the log says it; from the first one, where only the time of day or the distance is known."""
    options = case.options
    unit = 10 ** (9 - (options.digits if options.wall else 9))
    wanted, got = [start // unit * unit for start in expected(case).starts], result.starts()
    if options.wall != "unix":
        wanted, got = [[start - starts[0] for start in starts] for starts in (wanted, got)]
    assert got == wanted


CHECKS = {
    "lines": check_lines,
    "calls": check_calls,
    "paths": check_paths,
    "offsets": check_offsets,
    "threads": check_threads,
    "starts": check_starts,
}


def holds(case: Case, aspect: str) -> bool:
    """Whether the log holds what the aspect is about."""
    options = case.options
    if aspect == "paths":
        return (bool(options.tags) and not options.raw) or (options.only != "Z" and options.ordered)
    if aspect == "offsets":
        return options.only != "Z" and options.ordered
    if aspect == "starts":
        # Distances between lines that are too coarse, or of several files, do not add up to times.
        return bool(options.wall) or (options.relative == 9 and options.pids != "separate")
    return True


def parameters() -> list:
    """Every case in every aspect; what does not work yet is marked."""
    found = []
    for case in CASES.values():
        for aspect in (aspect for aspect in CHECKS if holds(case, aspect)):
            name = f"{case.id}/{aspect}"
            gaps = [gap for gap in NOT_YET if aspect in gap.aspects.split() and gap.when(case)]
            strict = any(gap.witness == name for gap in gaps)
            marks = [pytest.mark.xfail(strict=strict, reason=gap.reason) for gap in gaps[:1]]
            found.append(pytest.param(case, aspect, id=name, marks=marks))
    return found


@pytest.mark.parametrize(("case", "aspect"), parameters())
def test_a_generated_log_gives_its_totals(
    case: Case, aspect: str, imported: Callable[[Case], Result]
) -> None:
    CHECKS[aspect](case, imported(case))


def test_every_option_is_tried_both_ways() -> None:
    for field in fields(Options):
        assert len({getattr(case.options, field.name) for case in CASES.values()}) > 1, field.name


@pytest.mark.parametrize("name", TRUSS_CASES)
def test_a_generated_truss_log_gives_its_totals(name: str, native: Path, tmp_path: Path) -> None:
    """Counts, errors, bytes, paths, offsets and threads. Times are not compared: -E is processor time, -D a distance."""
    seed, options = TRUSS_CASES[name]
    system = story(seed, copies=False)
    calls = truss_text.shown(options, system)
    wanted = totals(rows(calls), None)
    result = Result(native, tmp_path, {"": truss_text.text(options, system)})
    assert result.calls(False) == wanted.calls
    named = {call.name for call in calls if call.path is not None}
    assert result.paths(named, False) == wanted.paths
    assert result.offsets() == {path: sorted(pairs, key=str) for path, pairs in wanted.offsets.items()}
    assert result.threads() == truss_text.threads(wanted, system)
    stated = result.manifest
    assert (stated["lines_understood"], stated["issues"]) == (result.printed, {})
    assert stated["recorder"] == "truss-log"
