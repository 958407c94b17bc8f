"""Whether the blocks of an experiment may be compared at all.

Three questions, answered by the same test as the claim: does the baseline differ from itself (the A/A arm),
does the first run of a block differ from the others (what one run leaves behind reaches the next), and does
the machine become slower or faster meanwhile (drift, which blocks take out; it is only reported).

What one run leaves behind can be all of a small difference, and none of the sign of one that is many times
as large. Since this test, too, is sometimes wrong by chance, it must not undo the clearest of claims.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sysdock.experiment import signed_rank
from sysdock.experiment.verdicts import CHANGED, INVALID, Claim, Verdict
from sysdock.sentences import Fact, fact

ORDER = "order"
# A change stays valid if its logarithm is more than this many times that of the difference of first runs.
_FAR_LARGER = 4.0


@dataclass(frozen=True)
class Placed:
    """A measured run: its block, its place in the block (from 1 on), its scenario, the primary metric."""

    block: int
    position: int
    scenario: str
    value: float


@dataclass(frozen=True)
class Check:
    """A row of `experiment_checks`: `effect` as a ratio minus one, `invalid` says why, None: it does not."""

    case_id: int
    check: str
    effect: float | None
    p: float | None
    invalid: Fact | None
    note: Fact | None = None

    def undoes(self, verdict: Verdict) -> bool:
        """Whether what was found makes this verdict invalid."""
        if self.case_id != verdict.samples.case_id or self.invalid is None:
            return False
        # Nothing moves a metric that no run has; the baseline under another name is what was checked.
        if not verdict.blocks or verdict.samples.is_control:
            return False
        return self.check != ORDER or self.effect is None or not _is_far_larger(verdict, self.effect)


def invalidated(verdicts: Sequence[Verdict], checks: Sequence[Check]) -> list[Verdict]:
    """The verdicts; those that a check undoes say so."""
    judged = []
    for verdict in verdicts:
        reasons = [check.invalid for check in checks if check.undoes(verdict)]
        judged.append(replace(verdict, verdict=INVALID, reason=reasons[-1]) if reasons else verdict)
    return judged


def _is_far_larger(verdict: Verdict, effect: float) -> bool:
    """Whether a change of the primary metric is far larger than `effect`, which is of that metric, too."""
    if verdict.verdict != CHANGED or not verdict.samples.is_primary:
        return False
    low, high = verdict.ratio_low, verdict.ratio_high
    if low is None or high is None or low <= 1 <= high:
        return False
    least = min(abs(math.log(low)), abs(math.log(high)))
    return least > _FAR_LARGER * abs(math.log1p(effect))


def check_case(
    case_id: int, runs: Sequence[Placed], verdicts: Sequence[Verdict], claim: Claim, *, duet: bool = False
) -> list[Check]:
    """The checks of a case, from its runs and the verdict of its A/A arm on the primary metric.

    duet: runs of a block were at the same time, so nothing of one reaches the next.
    """
    checks = [
        _control(case_id, each) for each in verdicts if each.samples.is_control and each.samples.is_primary
    ]
    residuals = _residuals(runs)
    if residuals:
        checks += [] if duet else [_order(case_id, residuals, claim)]
        checks.append(_drift(case_id, runs))
    return checks


def _control(case_id: int, verdict: Verdict) -> Check:
    claims = verdict.verdict == CHANGED
    effect = None if verdict.ratio is None else verdict.ratio - 1
    why = fact("experiment/baseline_differs") if claims else None
    return Check(case_id, "a/a", effect, verdict.p, why)


def _residuals(runs: Sequence[Placed]) -> dict[int, list[tuple[int, float]]]:
    """By block: position and logarithm, without what belongs to the scenario and to the block."""
    if not runs or min(run.value for run in runs) <= 0:
        return {}
    by_scenario: dict[str, list[float]] = {}
    blocks: dict[int, list[Placed]] = {}
    for run in runs:
        by_scenario.setdefault(run.scenario, []).append(math.log(run.value))
        blocks.setdefault(run.block, []).append(run)
    middle = {scenario: statistics.median(values) for scenario, values in by_scenario.items()}
    found = {}
    for block, some in blocks.items():
        own = [math.log(run.value) - middle[run.scenario] for run in some]
        level = statistics.fmean(own)
        found[block] = [(run.position, value - level) for run, value in zip(some, own, strict=True)]
    return found


def _order(case_id: int, residuals: dict[int, list[tuple[int, float]]], claim: Claim) -> Check:
    """First runs of the blocks against the others of the same block."""
    contrasts = []
    for some in residuals.values():
        first = [value for position, value in some if position == 1]
        others = [value for position, value in some if position != 1]
        if first and others:
            contrasts.append(first[0] - statistics.fmean(others))
    if not contrasts:
        return Check(case_id, ORDER, None, None, None)
    p = signed_rank.p_value(contrasts)
    effect = math.expm1(signed_rank.estimate(contrasts))
    why = fact("experiment/first_run_differs", percent=100 * effect)
    is_wrong = p <= claim.alpha and abs(effect) > claim.margin
    return Check(case_id, ORDER, effect, p, why if is_wrong else None)


def _drift(case_id: int, runs: Sequence[Placed]) -> Check:
    """From the first half of the blocks to the second, over all scenarios; Theil and Sen's slope."""
    blocks: dict[int, list[float]] = {}
    for run in runs:
        blocks.setdefault(run.block, []).append(math.log(run.value))
    levels = [statistics.fmean(values) for _, values in sorted(blocks.items())]
    slopes = [
        (later - earlier) / (second - first)
        for first, earlier in enumerate(levels)
        for second, later in enumerate(levels)
        if second > first
    ]
    effect = math.expm1(statistics.median(slopes) * (len(levels) - 1)) if slopes else None
    return Check(case_id, "drift", effect, None, None)
