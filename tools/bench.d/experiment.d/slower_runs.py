"""Real runs that do a little more work than others: how often the engine finds it.

Each experiment has its own blocks, run in the order of the plan, with the baseline under two names as a control. All comparisons with the baseline
are judged for themselves, by one look after 12 blocks, and by the looks that are the default.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from goals import Progress, Result, at_least, share, until_interrupted
from simulated_experiments import MARGIN, experiment_of, judged
from sysdock.experiment import one_off
from sysdock.experiment import plan as planned
from sysdock.experiment.loop_device import loop_device, mounted
from sysdock.experiment.one_run import measure, metrics_of, run_once
from sysdock.experiment.results import RunRow, samples_of
from sysdock.experiment.tools import run_tool
from sysdock.experiment.verdicts import CHANGED, Samples
from sysdock.library import Experiment

BLOCKS = 40
_FEW = 12
_METRICS = ("elapsed_s", "undelayed_s", "cpu_s")
# 40 ms: of shorter runs, what the caches hold is a larger part.
_TURNS = 1_600_000
_DEVICE_BYTES = 256 << 20
_QUIET_CV = 0.01
_EFFECTS = {"1 %": 0.01, "2 %": 0.02, "5 %": 0.05}
# What is to be found in nine of ten experiments, and whether with few blocks.
_GOALS = {("2 %", True), ("5 %", True), ("5 %", False), ("1 %", False)}
_LOOP = "exec perl -e 'for ($i = 0; $i < {turns}; $i++) {{}}'"
# Eight writes of 64 KiB; fsync after the last, or after the last two.
_WRITES = (
    'exec perl -MIO::Handle -e \'open F, ">", "{data}/file"; '
    'for (1..8) {{ print F "x" x 65536; if ($_ > 8 - {syncs}) {{ F->flush; F->sync }} }}\''
)

# By scenario and metric: the samples of each experiment.
Found = dict[tuple[str, str], list[Samples]]


@dataclass(frozen=True)
class Compared:
    """Values of a metric in all experiments, of one scenario against the baseline. `effect`: what was injected."""

    words: str
    effect: float | None
    metric: str
    samples: list[Samples]


def detect(
    number: int, seed: int, folder: Path, progress: Progress, blocks: int = BLOCKS
) -> Iterator[Result]:
    """Spins of 1, 2 and 5 %, and an extra fsync; `number` experiments of each."""
    yield from _spins(number, seed, folder, progress, blocks)
    yield from _syncs(number, seed, folder, progress, blocks)


def _spins(number: int, seed: int, folder: Path, progress: Progress, blocks: int) -> Iterator[Result]:
    per_turn, start = _calibrated(folder)
    whole = start + per_turn * _TURNS
    counts = [_TURNS, *(round(_TURNS + effect * whole / per_turn) for effect in _EFFECTS.values())]
    experiment = _with_control([_LOOP.format(turns=count) for count in counts], blocks)
    found: Found = {}
    with until_interrupted() as interrupts:
        _run(found, experiment, number, seed, folder, (), progress)
    names = dict(zip(("B", "C", "D"), _EFFECTS, strict=True))
    for metric in (each for each in _METRICS if (planned.CONTROL, each) in found):
        control = found[planned.CONTROL, metric]
        for arm, words in names.items():
            yield from _results(Compared(words, _EFFECTS[words], metric, found[arm, metric]), control)
        yield _of_control(metric, control)
    if interrupts:
        raise interrupts[0]


def _syncs(number: int, seed: int, folder: Path, progress: Progress, blocks: int) -> Iterator[Result]:
    found: Found = {}
    with until_interrupted() as interrupts, ExitStack() as stack:
        device = stack.enter_context(loop_device(folder / "image", _DEVICE_BYTES))
        run_tool("mkfs.ext4", "-q", device)
        data = stack.enter_context(mounted(device, folder / "data"))
        commands = [_WRITES.format(data=data, syncs=syncs) for syncs in (1, 2)]
        experiment = _with_control(commands, blocks)
        _run(found, experiment, number, seed, folder, (str(device),), progress)
    for metric in ("elapsed_s", "device_flushes") if found else ():
        control = found[planned.CONTROL, metric]
        yield from _results(Compared("an extra fsync", None, metric, found["B", metric]), control)
        yield _of_control(f"fsync, {metric}", control)
    if interrupts:
        raise interrupts[0]


def _calibrated(folder: Path) -> tuple[float, float]:
    """CPU time of a turn of the loop, and of perl without it [s]."""

    def usual(turns: int) -> float:
        words = ["sh", "-c", _LOOP.format(turns=turns)]
        return statistics.median(metrics_of(measure(words, folder, timeout_s=60))["cpu_s"] for _ in range(40))

    start = usual(0)
    return (usual(_TURNS) - start) / _TURNS, start


def _with_control(commands: Sequence[str], blocks: int) -> Experiment:
    experiment = one_off.of_commands(
        commands, blocks=blocks, metric="elapsed_s", margin=MARGIN, minutes=60, explain=False
    )
    return replace(experiment, plan=replace(experiment.plan, aa=True))


def _run(
    found: Found,
    experiment: Experiment,
    number: int,
    seed: int,
    folder: Path,
    devices: Sequence[str],
    progress: Progress,
) -> None:
    """Adds the samples of each of `number` experiments to `found`."""
    (case,) = experiment.cases()
    for n in range(1, number + 1):
        rows: list[RunRow] = []
        for block in range(1 - experiment.plan.dry, experiment.plan.looks[-1] + 1):
            progress(f"detect: {', '.join(devices) or 'spin'}, experiment {n} of {number}, block {block}")
            for turn in planned.turns(experiment, n, block, 1, seed):
                scenario = experiment.scenario(planned.scenario_of(experiment, turn.scenario))
                names = experiment.levels(scenario)
                run = run_once(case.workload, names, folder, devices=devices, reject=experiment.reject)
                values = (len(rows) + 1, case.case_id, block, 1, turn.position, turn.scenario, turn.kind)
                is_rejected = run.reason is not None
                rows.append(
                    RunRow(
                        *values,
                        run.started_ns,
                        run.dur_ns,
                        run.exit_code,
                        is_rejected,
                        run.reason,
                        run.metrics,
                    )
                )
        for samples in samples_of(experiment, case, rows):
            found.setdefault((samples.scenario, samples.metric), []).append(samples)


def _results(compared: Compared, control: Sequence[Samples]) -> Iterator[Result]:
    """How many were found with few blocks, and with the looks of the default; goals are for experiments with little noise."""
    few, looks = experiment_of(_FEW), experiment_of(None)
    variations = [_variation(each) for each in control]
    for experiment, words in ((few, f"one look after {_FEW}"), (looks, "looks after 10, 20, 40")):
        verdicts = [judged(experiment, _pairs(each)) for each in compared.samples]
        found = [each.verdict == CHANGED and each.difference > 0 for each in verdicts]
        quiet = [each for each, cv in zip(found, variations, strict=True) if cv <= _QUIET_CV]
        visible = [
            is_it
            for each, is_it in zip(verdicts, found, strict=True)
            if compared.effect and (each.smallest_visible or 1) <= compared.effect
        ]
        details: dict[str, str | float] = {
            "CV": f"{100 * statistics.median(variations):.1f} %",
            "all experiments": share(sum(found), len(found)),
            "where the effect was said to be visible": share(sum(visible), len(visible)),
        }
        what = f"{compared.words}, {compared.metric}, {words}"
        result = at_least("detect", what, sum(quiet), len(quiet), 0.9, **details)
        result = replace(result, shown=f"at a CV of at most {100 * _QUIET_CV:g} %: {result.shown}")
        is_few = experiment is few
        has_goal = (compared.words, is_few) in _GOALS or compared.metric == "device_flushes"
        yield result if has_goal else replace(result, goal="", is_met=None)


def _variation(control: Samples) -> float:
    """Coefficient of variation of a run, by the median of differences, so that a few late runs do not make it."""
    size = statistics.median(abs(difference) for difference in control.differences())
    return size / statistics.NormalDist().inv_cdf(0.75) / 2**0.5 if control.is_ratio else 0.0


def _pairs(samples: Samples) -> list[tuple[float, float]]:
    return list(zip(samples.baseline, samples.changed, strict=True))


def _of_control(words: str, control: Sequence[Samples]) -> Result:
    experiment = experiment_of(None)
    claims = sum(judged(experiment, _pairs(each)).verdict == CHANGED for each in control)
    # No goal: for one of these, `aa` compares thousands.
    return Result("detect", f"control (A/A): {words}", share(claims, len(control)), None)
