"""From the rows of an experiment to its verdicts: everything is computed again from `experiment_runs`."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

from sysdock.experiment import plan as planned
from sysdock.experiment.causes import Cause, Key, causes
from sysdock.experiment.explaining import NOTHING, Profile
from sysdock.experiment.methods import Method
from sysdock.experiment.one_run import UNSTEADY
from sysdock.experiment.plan import CONTROL
from sysdock.experiment.validity import Check, Placed, check_case, invalidated
from sysdock.experiment.verdicts import Claim, Samples, Verdict, judge
from sysdock.library import Case, Experiment
from sysdock.sentences import Fact, Joined, fact, json_of

# Which of the counters are compared in addition to the primary metric and those of the workload.
_COMPARED = (
    "elapsed_s", "cpu_s", "user_s", "system_s", "undelayed_s", "block_delay_s", "major_faults",
    "device_reads", "device_read_bytes", "device_writes", "device_write_bytes", "device_flushes",
)  # fmt: skip
# More rejected runs of one scenario than of another are a finding of their own.
_UNEQUAL = 0.2


@dataclass(frozen=True)
class RunRow:
    """A row of `experiment_runs`, with its metrics and why it lacks some; some have a profile or methods."""

    run_id: int
    case_id: int
    block: int
    attempt: int
    position: int
    scenario: str
    kind: str
    ts_ns: int
    dur_ns: int
    exit_code: int | None
    rejected: bool
    reason: Fact | None
    metrics: dict[str, float]
    profile: Profile = NOTHING
    methods: tuple[Method, ...] = ()
    missing: dict[str, Fact] = field(default_factory=dict)

    def values(self) -> tuple[Any, ...]:
        """The values in the order of the columns."""
        return (
            self.run_id,
            self.case_id,
            self.block,
            self.attempt,
            self.position,
            self.scenario,
            self.kind,
            self.ts_ns,
            self.dur_ns,
            self.exit_code,
            self.rejected,
            json_of(self.reason),
        )


def primary_of(experiment: Experiment, case: Case) -> str:
    """The metric that the claim is about, for this workload."""
    return case.workload.primary or experiment.claim.primary


def counted(rows: Iterable[RunRow], case_id: int) -> list[RunRow]:
    """Measured runs of whole blocks: of each block the attempt in which no run was rejected."""
    attempts: dict[tuple[int, int], list[RunRow]] = {}
    for row in rows:
        if row.case_id == case_id and row.kind == planned.MEASURED:
            attempts.setdefault((row.block, row.attempt), []).append(row)
    size = max((len(some) for some in attempts.values()), default=0)
    whole = [
        some for some in attempts.values() if len(some) == size and not any(row.rejected for row in some)
    ]
    return [row for some in whole for row in some]


def samples_of(experiment: Experiment, case: Case, rows: Sequence[RunRow]) -> list[Samples]:
    """Each scenario against the baseline, for the primary metric and the secondary ones."""
    used = counted(rows, case.case_id)
    primary = primary_of(experiment, case)
    own = [measure.name for measure in case.workload.measures]
    metrics = list(dict.fromkeys([primary, *own, *_COMPARED]))
    by_arm: dict[str, dict[int, RunRow]] = {}
    for row in used:
        by_arm.setdefault(row.scenario, {})[row.block] = row
    found = []
    for arm in planned.arms(experiment)[1:]:
        for metric in metrics:
            pairs = _pairs(by_arm, experiment.plan.baseline, arm, metric)
            if pairs or metric == primary or metric in own:
                found.append(
                    Samples(
                        case.case_id,
                        case.workload.name,
                        arm,
                        metric,
                        metric == primary,
                        arm == CONTROL,
                        tuple(before for before, _ in pairs),
                        tuple(after for _, after in pairs),
                    )
                )
    return found


def _pairs(
    by_arm: dict[str, dict[int, RunRow]], baseline: str, arm: str, metric: str
) -> list[tuple[float, float]]:
    before, after = by_arm.get(baseline, {}), by_arm.get(arm, {})
    return [
        (before[block].metrics[metric], after[block].metrics[metric])
        for block in sorted(before.keys() & after.keys())
        if metric in before[block].metrics and metric in after[block].metrics
    ]


def claim_of(experiment: Experiment) -> Claim:
    """The level of one look, and the margin."""
    return Claim(planned.level(experiment.plan, experiment.claim.alpha), experiment.claim.margin)


def judge_experiment(
    experiment: Experiment, cases: Sequence[Case], rows: Sequence[RunRow], not_restored: dict[int, Fact]
) -> tuple[list[Verdict], list[Check]]:
    """All verdicts, and the checks that they rest on. `not_restored`: by case, what was not put back."""
    claim = claim_of(experiment)
    samples = [each for case in cases for each in samples_of(experiment, case, rows)]
    verdicts = judge(samples, claim)
    checks: list[Check] = []
    for case in cases:
        metric = primary_of(experiment, case)
        placed = [
            Placed(row.block, row.position, row.scenario, row.metrics[metric])
            for row in counted(rows, case.case_id)
            if metric in row.metrics
        ]
        own = [each for each in verdicts if each.samples.case_id == case.case_id]
        checks += check_case(case.case_id, placed, own, claim, duet=experiment.plan.duet)
        checks.append(_rejected(case.case_id, rows))
        checks += _steadiness(case, rows)
        checks += _missing(case.case_id, rows)
        if case.case_id in not_restored:
            checks.append(Check(case.case_id, "state", None, None, not_restored[case.case_id]))
    return invalidated(verdicts, checks), checks


def _steadiness(case: Case, rows: Sequence[RunRow]) -> Iterator[Check]:
    """The part of the runs of each series that do not become steady, which is reported and not cut off."""
    for measure in case.workload.measures:
        flags = [row.metrics.get(f"{measure.name}{UNSTEADY}") for row in counted(rows, case.case_id)]
        known = [flag for flag in flags if flag is not None]
        if measure.series and known:
            note = fact("experiment/not_steady", metric=measure.name, runs=round(sum(known)), all=len(known))
            yield Check(
                case.case_id, "steady", statistics.fmean(known), None, None, note if any(known) else None
            )


def _missing(case_id: int, rows: Sequence[RunRow]) -> Iterator[Check]:
    """The part of the runs without a value, and the reason, for each measure that some runs did not give."""
    used = counted(rows, case_id)
    for metric in dict.fromkeys(name for row in used for name in row.missing):
        reasons = [row.missing[metric] for row in used if metric in row.missing]
        different = [each for number, each in enumerate(reasons) if each not in reasons[:number]]
        why = Joined(tuple(different), "semicolon")
        note = fact("experiment/without_value", metric=metric, runs=len(reasons), all=len(used), why=why)
        yield Check(case_id, "missing", len(reasons) / len(used), None, None, note)


def _rejected(case_id: int, rows: Sequence[RunRow]) -> Check:
    """Part of the measured runs that do not count; unequal parts make a comparison doubtful."""
    parts: dict[str, list[bool]] = {}
    for row in rows:
        if row.case_id == case_id and row.kind == planned.MEASURED:
            parts.setdefault(row.scenario, []).append(row.rejected)
    flags = [flag for some in parts.values() for flag in some]
    if not flags:
        return Check(case_id, "rejected", None, None, None)
    rates = {scenario: statistics.fmean(some) for scenario, some in parts.items()}
    uneven = max(rates.values()) - min(rates.values()) > _UNEQUAL and sum(flags) >= 4
    words = ", ".join(f"{scenario} {100 * rate:.0f} %" for scenario, rate in rates.items())
    note = fact("experiment/unequal_parts", parts=words) if uneven else None
    return Check(case_id, "rejected", statistics.fmean(flags), None, None, note)


def causes_of(experiment: Experiment, case_id: int, rows: Iterable[RunRow]) -> dict[str, list[Cause]]:
    """By scenario: what its explain runs did more or less of than those of the baseline."""
    by_arm: dict[str, dict[int, dict[Key, float]]] = {}
    for row in rows:
        if row.case_id == case_id and row.kind == planned.EXPLAIN and not row.rejected:
            items = {(item.kind, item.name): item.value for item in row.profile.items}
            by_arm.setdefault(row.scenario, {})[row.block] = items
    before = by_arm.get(experiment.plan.baseline, {})
    found = {}
    for arm in planned.arms(experiment)[1:]:
        after = by_arm.get(arm, {})
        found[arm] = causes([(before[block], after[block]) for block in sorted(before.keys() & after.keys())])
    return found


def cause_row(case_id: int, scenario: str, cause: Cause) -> tuple[Any, ...]:
    """A row of `experiment_causes`."""
    return (case_id, scenario, *astuple(cause))


def verdict_row(verdict: Verdict) -> tuple[Any, ...]:
    """A row of `experiment_verdicts`."""
    samples = verdict.samples
    return (
        samples.case_id,
        samples.workload,
        samples.scenario,
        samples.metric,
        samples.is_primary,
        verdict.verdict,
        verdict.ratio,
        verdict.ratio_low,
        verdict.ratio_high,
        verdict.difference,
        verdict.p,
        verdict.p_adjusted,
        verdict.blocks,
        statistics.median(samples.baseline) if samples.baseline else None,
        statistics.median(samples.changed) if samples.changed else None,
        verdict.smallest_visible,
        json_of(verdict.reason),
    )


def check_row(check: Check) -> tuple[Any, ...]:
    """A row of `experiment_checks`."""
    return (
        check.case_id,
        check.check,
        check.effect,
        check.p,
        check.invalid is None,
        json_of(check.invalid or check.note),
    )
