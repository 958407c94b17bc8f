"""Runs an experiment: case by case, block by block, and keeps each block as soon as it is whole."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from sysdock.analysis import Session
from sysdock.errors import UserError, interruptions
from sysdock.experiment import plan as planned
from sysdock.experiment import signed_rank
from sysdock.experiment.bench import Bench
from sysdock.experiment.definition import missing_tools, problems
from sysdock.experiment.documents import FOLDER as DOCUMENTS
from sysdock.experiment.documents import write_documents
from sysdock.experiment.explaining import NOTHING, Profile, profile, recorder, servers_recorded
from sysdock.experiment.one_run import DISTURBANCES, Run, Together, run_once, run_together
from sysdock.experiment.plan import Turn
from sysdock.experiment.power import smallest_visible
from sysdock.experiment.preparation import PREPARATIONS
from sysdock.experiment.results import (
    RunRow,
    cause_row,
    causes_of,
    check_row,
    claim_of,
    counted,
    judge_experiment,
    primary_of,
    samples_of,
    verdict_row,
)
from sysdock.experiment.run_recording import Kept
from sysdock.experiment.scripts import refuse_strange_scripts
from sysdock.experiment.state import Journal, State, repair
from sysdock.experiment.tools import how_to_install, logged, run_tool
from sysdock.experiment.verdicts import is_decided, judge
from sysdock.library import Case, Experiment, Library, Reject
from sysdock.library.experiments import Step, filled
from sysdock.own_folder import open_existing, refuse_replaceable
from sysdock.recording import Recording
from sysdock.recording.native import find_native
from sysdock.sentences import Fact, fact, languages, say

Say = Callable[[str], None]
# Number of attempts of a block before the case ends.
_ATTEMPTS = 4
# Before another attempt, where the machine was disturbed [s]: what disturbs it may pass.
_PAUSES_S = (0.0, 2.0, 10.0)
# More rejected runs than this, of all so far, and the machine is too busy.
_MOST_REJECTED = 0.5

_ANY = Reject(swap=False, throttled=False, foreign_cpu=None, steal=None)


@dataclass
class Progress:
    """State of a line of progress: the case, the block, the number of blocks, and the start time [s]."""

    show: Callable[[str], None] = lambda _: None
    say: Say = lambda _: None
    began: float = field(default_factory=time.monotonic)


class CaseEnded(Exception):
    """A case ends before its last look; the words say why."""


def run(
    experiment: Experiment, library: Library, output: Path, options: dict[str, Any], progress: Progress
) -> Kept:
    """Runs it into the recording `output`, new. Whatever ends it, what was measured is kept.

    UserError before anything is made: no root where it is needed, a program missing, a mistake in the file.
    """
    refuse(experiment, library)
    kept = Kept.begin(output, library, experiment, options)
    go_on(experiment, kept, progress)
    return kept


def refuse(experiment: Experiment, library: Library) -> None:
    """Raises a UserError where the experiment cannot run on this machine."""
    if wrong := problems(library, experiment):
        raise UserError(wrong[0], f"sysdock check {experiment.path}", str(experiment.path))
    changes = any(step.do for step in experiment.prepare) or experiment.settings
    if os.geteuid() != 0 and (changes or any(factor.setting for factor in experiment.factors)):
        fact = "this experiment changes settings of the machine, or mounts file systems: it needs root"
        raise UserError(fact, "run it with sudo", experiment.id)
    if experiment.plan.duet:
        cpu_shares(len(planned.arms(experiment)))
    if missing := missing_tools(experiment):
        hint = f"on Debian: {how_to_install(missing)}; or leave cases out with --set"
        raise UserError(f"programs are missing: {', '.join(missing)}", hint)
    find_native()


def go_on(experiment: Experiment, kept: Kept, progress: Progress) -> None:
    """Runs what is not there yet, and computes the verdicts of all that is there."""
    ended = "failed"
    not_restored: dict[int, Fact] = {}
    refuse_replaceable(kept.folder)
    # One that was killed may have left it to the group of its servers.
    _close(kept.folder)
    # Whatever an experiment that was killed has left would disturb this one.
    repair(progress.say)
    try:
        progress.say(planned.announcement(experiment))
        with interruptions():
            for case in experiment.cases():
                _Running(experiment, case, kept, progress, not_restored).run()
        ended = "end of input"
    except KeyboardInterrupt:
        ended = "interrupted"
        raise
    except OSError:
        ended = "write error"
        raise
    finally:
        with contextlib.suppress(OSError) if ended == "write error" else contextlib.nullcontext():
            write_verdicts(experiment, kept, not_restored)
            kept.end(ended)
            _close(kept.folder)
            with Session(Recording.open(kept.folder), kept.library) as session:
                write_documents(experiment, session, kept.options, kept.folder / DOCUMENTS)


def _close(folder: Path) -> None:
    """Takes from the group of servers what let them pass; a recording that is shared stays so.

    UserError: the folder is not ours, or others may write to it.
    """
    own = open_existing(folder)
    try:
        mode = stat.S_IMODE(os.fstat(own.descriptor).st_mode)
        if os.geteuid() == 0 and mode == stat.S_IRWXU | stat.S_IXGRP:
            os.fchmod(own.descriptor, stat.S_IRWXU)
            os.fchown(own.descriptor, 0, 0)
    finally:
        own.close()


def write_verdicts(experiment: Experiment, kept: Kept, not_restored: dict[int, Fact]) -> None:
    """Computes verdicts, checks and causes again from the runs that are kept."""
    cases = experiment.cases()
    verdicts, checks = judge_experiment(experiment, cases, kept.rows, not_restored)
    causes = [
        cause_row(case.case_id, scenario, cause)
        for case in cases
        for scenario, some in causes_of(experiment, case.case_id, kept.rows).items()
        for cause in some
    ]
    kept.replace(
        {
            "experiment_verdicts": [verdict_row(each) for each in verdicts],
            "experiment_checks": [check_row(each) for each in checks],
            "experiment_causes": causes,
        }
    )


class _Running:
    """One case: its preparations, its blocks, and the judgements between them."""

    def __init__(
        self,
        experiment: Experiment,
        case: Case,
        kept: Kept,
        progress: Progress,
        not_restored: dict[int, Fact],
    ) -> None:
        self.experiment = experiment
        self.case = case
        self.kept = kept
        self.progress = progress
        self.not_restored = not_restored
        self.seed = int(kept.options["seed"])
        # Commands of the user, who calls sudo for the recorder, need no more rights than the user has.
        self._as_root = not experiment.is_of_commands or bool(kept.options.get("as_root"))
        self.scratch = (kept.folder / f"case-{case.case_id:03}").resolve()

    def run(self) -> None:
        """Prepares, runs the blocks up to the look that decides, and takes down what was made."""
        if self._blocks_done() >= self.experiment.plan.looks[-1]:
            return
        words = ", ".join(f"{name} {value}" for name, value in self.case.values.items())
        what = f"{self.case.workload.name}{', ' if words else ''}{words}"
        if (cases := len(self.experiment.cases())) > 1:
            self.progress.say(f"case {self.case.case_id} of {cases}: {what}")
        journal = Journal.begin(f"{self.experiment.id}, {self.kept.folder.absolute()}")
        state = State(journal, self.scratch)
        self.scratch.mkdir(mode=0o700, exist_ok=True)
        scans = self.kept.folder / "scans"
        bench = Bench(self.case.case_id, self.scratch, scans, self.kept.library, state, self._names())
        try:
            with _taken_down(state, journal, self._note_residue):
                self._prepare(bench)
                self._blocks(bench)
        except CaseEnded as ended:
            self.progress.say(f"case {self.case.case_id}: {ended}")
        finally:
            if not any(path.is_mount() for path in self.scratch.iterdir()):
                shutil.rmtree(self.scratch, ignore_errors=True)

    def _names(self) -> dict[str, object]:
        return {
            "scratch": self.scratch,
            "python": sys.executable,
            "native": find_native(),
            "cpus": os.cpu_count() or 1,
            **self.case.values,
        }

    def _note_residue(self, words: str) -> None:
        self.not_restored[self.case.case_id] = fact("experiment/not_restored", what=words)
        self.progress.say(f"not restored: {words}")

    def _prepare(self, bench: Bench) -> None:
        commands: list[tuple[int, int, str]] = []
        for number, step in enumerate(self.experiment.prepare, 1):
            self.progress.show(f"preparing: {step.text}")
            note = partial(_note_command, commands, self.case.case_id, number)
            with _errors_of(step), logged(note):
                if step.do:
                    known = PREPARATIONS[step.do]
                    bench.scans.mkdir(exist_ok=True)
                    known.function(bench, **known.taken({**self.case.values, **step.arguments}))
                else:
                    command = [filled(word, bench.names) for word in step.run or ()]
                    refuse_strange_scripts(command, self.scratch)
                    run_tool(*command)
        self.kept.add({"experiment_facts": bench.facts, "experiment_commands": commands})
        self.kept.add_environment(bench.environment)

    def _blocks(self, bench: Bench) -> None:
        plan = self.experiment.plan
        done = self._blocks_done()
        self._warm_up(bench)
        for block in range(done + 1, plan.looks[-1] + 1):
            self._block(bench, block)
            if block == plan.pilot and plan.pilot < plan.looks[-1]:
                self._after_pilot()
            if block in plan.looks[:-1] and self._is_decided():
                return
            if time.monotonic() - self.progress.began > 60 * plan.minutes:
                raise CaseEnded(f"{plan.minutes:g} minutes are over, after {block} blocks")

    def _warm_up(self, bench: Bench) -> None:
        """The blocks that do not count: they tell how long the others will take."""
        began = time.monotonic()
        before = len(self.kept.rows)
        for number in range(1 - self.experiment.plan.dry, 1):
            self._block(bench, number)
        if runs := len(self.kept.rows) - before:
            self.progress.say(planned.time_of_case(self.experiment, (time.monotonic() - began) / runs))

    def _blocks_done(self) -> int:
        rows = counted(self.kept.rows, self.case.case_id)
        return max((row.block for row in rows), default=0)

    def _block(self, bench: Bench, block: int) -> None:
        """The runs of a block; one that is rejected has the whole block repeated."""
        rows: list[RunRow] = []
        for attempt in range(1, _ATTEMPTS + 1):
            turns = planned.turns(self.experiment, self.case.case_id, block, attempt, self.seed)
            rows = self._together(bench, block, attempt, turns) if self.experiment.plan.duet else []
            for turn in turns[len(rows) :]:
                if rows and rows[-1].rejected:
                    break
                self._show(block, turn)
                rows.append(self._turn(bench, block, attempt, turn, len(self.kept.rows) + len(rows) + 1))
                if rows[-1].rejected and turn.kind != planned.EXPLAIN:
                    break
            self.kept.add_runs(rows)
            last = rows[-1]
            if not last.rejected or last.kind == planned.EXPLAIN:
                self._note_unexplained(block, rows)
                return
            if block < 1 and last.exit_code != 0:
                raise UserError(_said(last.reason), "run the command alone first", self.case.workload.name)
            self.progress.say(f"block {block}, {last.scenario}: {_said(last.reason)}; the block is repeated")
            self._refuse_busy()
            if attempt < _ATTEMPTS and last.reason and last.reason.code in DISTURBANCES:
                time.sleep(_PAUSES_S[attempt - 1])
        raise CaseEnded(f"block {block} was rejected {_ATTEMPTS} times: {_said(last.reason)}")

    def _together(self, bench: Bench, block: int, attempt: int, turns: Sequence[Turn]) -> list[RunRow]:
        """The runs of a block that are judged, all at the same time; one that is rejected comes last."""
        together = [turn for turn in turns if turn.kind != planned.EXPLAIN]
        self._show(block, together[0])
        shares = cpu_shares(len(planned.arms(self.experiment)))
        mark = bench.state.mark()
        try:
            bench.state.apply({filled(k, bench.names): v for k, v in self.experiment.settings.items()})
            runs = []
            for turn, cpus in zip(together, shares, strict=False):
                folder = self.scratch / f"duet-{turn.position}"
                folder.mkdir(exist_ok=True)
                runs.append(Together(self._names_of(bench, turn), folder, cpus, turn.padding))
            reject = _with_neighbours(self.experiment.reject)
            with bench.state.running(self.case.workload.name) as marked:
                found = run_together(
                    self.case.workload,
                    runs,
                    reject=reject,
                    mark=marked,
                    needed=self._needed(explains=False),
                    as_root=self._as_root,
                )
        finally:
            if residue := bench.state.undo(mark):
                self._note_residue("; ".join(map(str, residue)))
        first = len(self.kept.rows) + 1
        rows = [
            self._row(first + n, block, attempt, turn, run_)
            for n, (turn, run_) in enumerate(zip(together, found, strict=True))
        ]
        return sorted(rows, key=lambda row: row.rejected)

    def _names_of(self, bench: Bench, turn: Turn) -> dict[str, object]:
        """Values of placeholders in this run."""
        scenario = self.experiment.scenario(planned.scenario_of(self.experiment, turn.scenario))
        return {**bench.names, **self.experiment.levels(scenario)}

    def _note_unexplained(self, block: int, rows: Sequence[RunRow]) -> None:
        for row in rows:
            if row.kind == planned.EXPLAIN and row.rejected:
                self.progress.say(
                    f"block {block}, {row.scenario}: no causes from this block: {_said(row.reason)}"
                )

    def _refuse_busy(self) -> None:
        measured = [row for row in self.kept.rows if row.case_id == self.case.case_id and row.block >= 1]
        rejected = sum(row.rejected for row in measured)
        if len(measured) >= 2 * len(planned.arms(self.experiment)) and rejected > _MOST_REJECTED * len(
            measured
        ):
            raise CaseEnded(f"{rejected} of {len(measured)} runs do not count: the machine is too busy")

    def _turn(self, bench: Bench, block: int, attempt: int, turn: Turn, run_id: int) -> RunRow:
        scenario = self.experiment.scenario(planned.scenario_of(self.experiment, turn.scenario))
        names = self._names_of(bench, turn)
        settings = self.experiment.settings_of(scenario, names)
        mark = bench.state.mark()
        try:
            # Runs that do not count may be disturbed, and a recorder is not another program.
            reject = self.experiment.reject if turn.kind == planned.MEASURED else _ANY
            recording = self.scratch / "explain" if turn.kind == planned.EXPLAIN else None
            run_ = self._measured(bench, names, settings, reject, recording, turn.padding)
            run_, explained = self._profiled(bench, run_, recording)
        finally:
            residue = bench.state.undo(mark)
            if residue:
                self._note_residue("; ".join(map(str, residue)))
        return self._row(run_id, block, attempt, turn, run_, explained)

    def _row(
        self, run_id: int, block: int, attempt: int, turn: Turn, run_: Run, explained: Profile = NOTHING
    ) -> RunRow:
        return RunRow(
            run_id,
            self.case.case_id,
            block,
            attempt,
            turn.position,
            turn.scenario,
            turn.kind,
            run_.started_ns,
            run_.dur_ns,
            run_.exit_code,
            run_.reason is not None,
            run_.reason,
            run_.metrics,
            explained,
            run_.methods,
            run_.missing,
        )

    def _profiled(self, bench: Bench, run_: Run, recording: Path | None) -> tuple[Run, Profile]:
        """The profile of an explain run, whose recording is removed; empty without a recording."""
        if recording is None:
            return run_, NOTHING
        try:
            if run_.reason is not None:
                return run_, NOTHING
            units = run_.metrics.get(self.case.workload.units or "", 1.0)
            servers = _beside(recording) if bench.state.server_pids() else None
            return run_, profile(recording, self.kept.library, bench.devices, units, servers)
        except (UserError, ZeroDivisionError) as error:
            return replace(run_, reason=fact("experiment/nothing_recorded", why=str(error))), NOTHING
        finally:
            for folder in (recording, _beside(recording)):
                shutil.rmtree(folder, ignore_errors=True)

    def _measured(
        self,
        bench: Bench,
        names: dict[str, object],
        settings: dict[str, str],
        reject: Reject,
        recording: Path | None,
        padding: int,
    ) -> Run:
        """Sets, proves, runs (under the recorder if there is a `recording` to make), and proves again."""
        bench.state.apply({key: value for key, value in settings.items() if not key.startswith("cache:")})
        late = {key: value for key, value in settings.items() if key.startswith("cache:")}
        if differences := bench.state.prove():
            return Run(0, 0, None, reason=fact("experiment/not_as_it_should_be", what=str(differences[0])))
        servers = bench.state.server_pids()
        with (
            servers_recorded(_beside(recording), servers) if recording else contextlib.nullcontext(),
            bench.state.running(self.case.workload.name) as mark,
        ):
            run_ = run_once(
                self.case.workload,
                names,
                self.scratch,
                devices=bench.devices,
                reject=reject,
                under=recorder(recording, as_root=self._as_root) if recording else (),
                padding=padding,
                ready=lambda: bench.state.apply(late),
                servers=servers,
                mark=mark,
                needed=self._needed(explains=recording is not None),
                # The recorder needs root, and itself runs the command as the user who called sudo.
                as_root=self._as_root or recording is not None,
            )
        if run_.reason is None and (differences := bench.state.prove()):
            return replace(run_, reason=fact("experiment/changed_during_run", what=str(differences[0])))
        return run_

    def _needed(self, *, explains: bool) -> set[str]:
        """The measures without which a run does not count: that of the claim, or of the units of work."""
        units = self.case.workload.units
        return {units} if explains and units else {primary_of(self.experiment, self.case)}

    def _show(self, block: int, turn: Turn) -> None:
        of = self.experiment.plan.looks
        target = next((look for look in of if look >= block), of[-1])
        kind = "warming up" if turn.kind == planned.DRY else f"block {block} of {target}"
        kind += ", under the recorder" if turn.kind == planned.EXPLAIN else ""
        self.progress.show(f"case {self.case.case_id}: {kind}, {turn.scenario}{self._left(block)}")

    def _left(self, block: int) -> str:
        rows = [row for row in self.kept.rows if row.case_id == self.case.case_id]
        if not rows or block < 1:
            return ""
        took = (time.time_ns() - rows[0].ts_ns) / 1e9
        done = max(1, block - 1 + self.experiment.plan.dry)
        look = next((each for each in self.experiment.plan.looks if each >= block), block)
        return f", about {took / done * (look - block + 1):.0f} s left"

    def _visible(self) -> list[Visible]:
        """The effect that all blocks will show for each scenario; results of other cases are used."""
        claim = claim_of(self.experiment)
        samples = [
            each
            for case in self.experiment.cases()
            for each in samples_of(self.experiment, case, self.kept.rows)
            if each.is_primary and not each.is_control
        ]
        blocks, found = self.experiment.plan.looks[-1], []
        for verdict in judge(samples, claim):
            each = verdict.samples
            if each.case_id == self.case.case_id and each.is_ratio:
                differences = each.differences()
                alone = smallest_visible(differences, blocks, claim.alpha)
                with_others = smallest_visible(differences, blocks, verdict.level)
                if alone is not None:
                    so_far = math.expm1(signed_rank.estimate(differences))
                    least = None if with_others is None else math.expm1(with_others)
                    found.append(Visible(so_far, math.expm1(alone), least))
        return found

    def _after_pilot(self) -> None:
        """Says what can be seen, and ends the case where that is too little in each scenario.

        One may still be decided if the change that is looked for, or that it has so far, is visible when it
        is judged alone: which of the others will be significant is not known yet.
        """
        plan, detect = self.experiment.plan, self.experiment.claim.detect
        found = self._visible()
        if not found:
            return
        self.progress.say(
            f"after the pilot of {plan.pilot} blocks: {_visible_in_words(found, plan.looks[-1])}"
        )
        if all(each.alone > max(detect, abs(each.so_far)) for each in found):
            words = f"{plan.looks[-1]} blocks would not show a change of {100 * detect:g} %"
            raise CaseEnded(f"the machine is too noisy: {words}")

    def _is_decided(self) -> bool:
        """Whether the scenarios need no more blocks."""
        samples = [
            s
            for s in samples_of(self.experiment, self.case, self.kept.rows)
            if s.is_primary and not s.is_control
        ]
        return is_decided(judge(samples, claim_of(self.experiment)))


@dataclass(frozen=True)
class Visible:
    """The change of a scenario so far, and the smallest change that all blocks will show, both as parts.

    alone: if it were the only one; with_others: as it will be judged, None: with so few blocks nothing can be
    significant.
    """

    so_far: float
    alone: float
    with_others: float | None


def _said(why: Fact | None) -> str:
    """A reason in the language of progress and errors."""
    return say(why, languages()[0])


def _visible_in_words(found: Sequence[Visible], blocks: int) -> str:
    known = [each.with_others for each in found if each.with_others is not None]
    if not known:
        return f"{blocks} blocks are too few for so many comparisons at once"
    low, high = f"{100 * min(known):.2g}", f"{100 * max(known):.2g}"
    change = f"a change of {low} %" if low == high else f"a change of {low} to {high} %, by scenario,"
    return f"with {blocks} blocks, {change} is visible"


def cpu_shares(number: int) -> list[str]:
    """The CPUs of each of `number` runs at once, as for taskset(1); a UserError where they are too few."""
    cpus = sorted(os.sched_getaffinity(0))
    if number > len(cpus):
        fact = f"a duet of {number} runs at once needs as many CPUs, and there are {len(cpus)}"
        raise UserError(fact, "compare fewer scenarios, leave out the A/A arm, or do without duet")
    size = len(cpus) // number
    return [",".join(map(str, cpus[n * size : (n + 1) * size])) for n in range(number)]


def _beside(recording: Path) -> Path:
    """The recording of servers that run alongside a command."""
    return recording.with_name(f"{recording.name}-servers")


def _with_neighbours(reject: Reject) -> Reject:
    """The runs of a duet are foreign to each other."""
    return replace(reject, foreign_cpu=None)


def _note_command(commands: list[tuple[int, int, str]], case_id: int, step: int, command: str) -> None:
    commands.append((case_id, step, command))


@contextmanager
def _taken_down(state: State, journal: Journal, residue: Callable[[str], None]) -> Iterator[None]:
    """At its end all is undone, also at a second Ctrl-C."""
    try:
        yield
    finally:
        handlers = {
            number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            if left := state.undo():
                residue("; ".join(map(str, left)))
            else:
                journal.close()
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)


@contextmanager
def _errors_of(step: Step) -> Iterator[None]:
    """Says in which step a disk was full; an image that finds no room below it is a device with errors."""
    import errno

    try:
        yield
    except OSError as error:
        hints = {
            errno.ENOSPC: "the file system that was made is full: give it more with --set device_bytes=N, "
            "or take fewer files",
            errno.EIO: "is the disk full that holds the output? the image of the device lies there",
        }
        fact = f"step `{step.do or ' '.join(step.run or ())}`: {(error.strerror or str(error)).lower()}"
        raise UserError(fact, hints.get(error.errno or 0)) from None
