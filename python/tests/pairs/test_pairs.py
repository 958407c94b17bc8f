"""Every pair of programs: same result, the fault is in one recording and not in the other, and the rules say so.

Recordings are those in testdata/kept, where they fit (kept.py), otherwise new ones. SYSDOCK_KEPT=off: all are new.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kept import kept
from pairs import FOLDER, UNSEEN, VARIANTS, Pair, Workshop, load_all, missing
from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Recording
from sysdock.recording.limits import OFF, SWITCH

TRIES = 3
# Others are left to `tools/exam`, which has a list of its own for them.
KNOWN = [pair for pair in load_all() if pair.rule != UNSEEN]
# All pairs with the recorder that is used where it may be; some with strace, under which calls take up to a hundred times longer.
WITH_STRACE = [pair for pair in KNOWN if pair.language == "python" and "kernel" not in pair.needs]


def chosen(pairs: list[Pair]) -> set[str]:
    """The names of one pair for each rule in each of two languages, which take turns from rule to rule.

    A rule that is asked about a pair in Python below strace has one of its two languages by that.
    """
    by_rule: dict[str, dict[str, str]] = {}
    for pair in pairs:
        by_rule.setdefault(pair.rule, {}).setdefault(pair.language, pair.name)
    below_strace = {pair.rule for pair in WITH_STRACE}
    names = set()
    for number, (rule, languages) in enumerate(by_rule.items()):
        ordered = sorted(languages.keys() - {"python"} if rule in below_strace else languages)
        turns = 1 if rule in below_strace else 2
        names |= {languages[ordered[(number + turn) % len(ordered)]] for turn in range(turns)}
    return names


CHOSEN = chosen(KNOWN)
RUNS = [
    *(pytest.param((pair, "auto"), marks=() if pair.name in CHOSEN else pytest.mark.more) for pair in KNOWN),
    *((pair, "strace") for pair in WITH_STRACE),
]


# Runs with a kept recording: these are tested each time.
KEPT_RUNS = [
    *((pair, "auto") for pair in KNOWN if pair.name in CHOSEN),
    *((pair, "strace") for pair in WITH_STRACE),
]


@dataclass
class Recorded:
    """Both runs of a pair: what was printed, and a session on each recording."""

    pair: Pair
    recorder: str
    printed: dict[str, str]
    sessions: dict[str, Session]
    is_kept: bool = False


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """One for all pairs, so that what they share is built once."""
    return Workshop(tmp_path_factory.mktemp("pairs"))


@contextmanager
def runs(pair: Pair, recorder: str, workshop: Workshop, library: Library) -> Iterator[Recorded]:
    """Runs and records both programs of a pair."""
    printed: dict[str, str] = {}
    sessions: dict[str, Session] = {}
    folders: list[Path] = []
    try:
        for variant in VARIANTS:
            folder, printed[variant] = workshop.record(pair, variant, recorder)
            folders.append(folder)
            sessions[variant] = Session(Recording.open(folder), library)
        yield Recorded(pair, recorder, printed, sessions)
    finally:
        for session in sessions.values():
            session.close()
        for folder in folders:
            shutil.rmtree(folder)


@contextmanager
def kept_runs(pair: Pair, recorder: str, workshop: Workshop, library: Library) -> Iterator[Recorded | None]:
    """The recordings of a pair that are kept, if they are those that would be made now."""
    folder = workshop.folder / f"kept-{pair.name}-{recorder}"
    found = kept(pair, recorder, folder) if os.environ.get("SYSDOCK_KEPT") != "off" else None
    if found is None:
        yield None
        return
    # They were made by somebody else, and a limit of time must not decide.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SWITCH, OFF)
        sessions = {
            variant: Session(Recording.open(path), library) for variant, path in found.folders.items()
        }
        try:
            yield Recorded(pair, recorder, found.printed, sessions, is_kept=True)
        finally:
            for session in sessions.values():
                session.close()
            shutil.rmtree(folder)


@pytest.fixture(scope="module", params=RUNS, ids=lambda run: f"{run[0].name}-{run[1]}")
def recorded(request: pytest.FixtureRequest, workshop: Workshop, library: Library) -> Iterator[Recorded]:
    """A pair, recorded once for all tests."""
    pair, recorder = request.param
    if reason := missing(pair):
        pytest.skip(reason)
    with kept_runs(pair, recorder, workshop, library) as found:
        if found is not None:
            yield found
            return
    with runs(pair, recorder, workshop, library) as found:
        yield found


@pytest.fixture(autouse=True)
def _counted(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> None:
    """Notes which pairs were recorded, for the closing lines of the run."""
    if "recorded" in request.fixturenames and not request.getfixturevalue("recorded").is_kept:
        found = request.getfixturevalue("recorded")
        record_property("recorded afresh", f"{found.pair.name}-{found.recorder}")


def told(recorded: Recorded, workshop: Workshop, library: Library, tell: Callable[[Recorded], Any]) -> list:
    """What `tell` says of a pair; where that is not None, of up to two more runs.

    Times decide, and others use this machine: a disk that stalls once is no mistake of a rule. What is kept stays as it is.
    """
    said = [tell(recorded)]
    while said[-1] is not None and len(said) < TRIES and not recorded.is_kept:
        with runs(recorded.pair, recorded.recorder, workshop, library) as again:
            said.append(tell(again))
    return said


def test_both_programs_give_the_same_result(recorded: Recorded):
    assert recorded.printed["faulty"].strip()
    assert recorded.printed["faulty"] == recorded.printed["fixed"]


def shown_wrongly(runs: Recorded) -> dict | None:
    """What the query of the pair shows in its recordings, where that is wrong."""
    shown = {variant: runs.sessions[variant].fetch(runs.pair.shows) for variant in VARIANTS}
    return None if shown == {"faulty": [(True,)], "fixed": [(False,)]} else shown


def test_only_the_faulty_recording_shows_the_fault(recorded: Recorded, workshop: Workshop, library: Library):
    said = told(recorded, workshop, library, shown_wrongly)
    assert said[-1] is None, said


# A file that is faster than any device, by the rule's own numbers; counted here from the calls.
FAST = """
SELECT count(*) > 0 FROM (
    SELECT path FROM calls WHERE class IN ('read', 'write') AND transferred_bytes > 0 GROUP BY path, class
    HAVING sum(transferred_bytes) >= 33554432 AND sum(transferred_bytes) > sum(dur_ns)
)
"""
# What else the machine does may keep a program from a CPU, whatever it does itself.
OF_THE_MACHINE = {"time/cpu_wait"}


def found_wrongly(runs: Recorded) -> dict | None:
    """What the rules find in the recordings of a pair, where that is wrong."""
    found = {
        variant: [
            finding.rule
            for finding in session.diagnose()
            if finding.status == "finding" and finding.rule not in OF_THE_MACHINE
        ]
        for variant, session in runs.sessions.items()
    }
    first = [runs.pair.rule]
    if runs.pair.rule == "io/cache_rate" and runs.sessions["faulty"].fetch(FAST) == [(False,)]:
        # A machine this busy has no memory faster than a device: then nothing is to be found.
        first = []
    # What goes with it may take longer on a busy machine; in a recording that is kept, the order is strict.
    is_first = found["faulty"][:1] == first or (
        not runs.is_kept and runs.pair.rule in found["faulty"] and found["faulty"][0] in runs.pair.also
    )
    right = is_first and runs.pair.rule not in found["fixed"]
    return None if right else found


def test_the_rule_tells_them_apart(recorded: Recorded, workshop: Workshop, library: Library):
    said = told(recorded, workshop, library, found_wrongly)
    assert said[-1] is None, said


@pytest.mark.parametrize(
    "program", sorted(FOLDER.glob("*/*.sh")), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_shell_programs_parse(program: Path):
    shell = program.read_text().partition("\n")[0].removeprefix("#!/bin/")
    assert shell in ("sh", "bash")
    subprocess.run([shell, "-n", program], check=True)


def test_each_rule_has_pairs_in_two_languages():
    languages: dict[str, set[str]] = {}
    for pair in load_all():
        if pair.rule != UNSEEN:
            languages.setdefault(pair.rule, set()).add(pair.language)
    assert [rule for rule, used in languages.items() if len(used) < 2] == []


def test_the_eleven_published_cases_are_there():
    cases = [pair for pair in load_all() if pair.name.startswith("case")]
    assert [pair.name[4:6] for pair in cases] == [f"{number:02}" for number in range(1, 12)]
    assert all(pair.origin for pair in cases)
