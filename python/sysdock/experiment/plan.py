"""Which run comes when: pure, printable, and the same again from the same seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

from sysdock.library import Experiment, Plan
from sysdock.text import human_ns

CONTROL = "A/A"
MEASURED, DRY, EXPLAIN = "measured", "dry", "explain"
# The level of each look, as a part of the level of all looks together. Three looks at this level are 1 %
# in all (10, 20 and 40 blocks; simulated, as `tools/bench experiment peeking` repeats).
_LEVEL_OF_A_LOOK = 0.4
# A page: beyond it the same places in pages come again.
_MOST_PADDING = 4096


@dataclass(frozen=True)
class Turn:
    """A run that is due: its place in the block, its scenario (or the control), and its kind.

    `padding`: bytes by which its environment is larger. The size of the environment moves the stack, which
    alone can change the time of a program by some percent (Mytkowicz and others, 2009); drawn again for each
    run, that is noise and no difference.
    """

    position: int
    scenario: str
    kind: str
    padding: int = 0


def arms(experiment: Experiment) -> list[str]:
    """The scenarios of a block, the baseline first, then the control if there is one."""
    plan = experiment.plan
    others = [each.name for each in experiment.scenarios if each.name != plan.baseline]
    return [plan.baseline, *([CONTROL] if plan.aa else []), *others]


def scenario_of(experiment: Experiment, arm: str) -> str:
    """The scenario that an arm really runs."""
    return experiment.plan.baseline if arm == CONTROL else arm


def turns(experiment: Experiment, case_id: int, block: int, attempt: int, seed: int) -> list[Turn]:
    """The runs of a case in one block, in the order drawn for it; blocks of the dry run are 0 and below."""
    names = arms(experiment)
    chance = random.Random(f"{seed}/{case_id}/{block}/{attempt}")
    drawn = chance.sample(names, len(names))
    if block < 1:
        return [Turn(n, arm, DRY) for n, arm in enumerate(drawn, 1) if arm != CONTROL]
    found = [Turn(n, arm, MEASURED, chance.randrange(_MOST_PADDING)) for n, arm in enumerate(drawn, 1)]
    every = experiment.plan.explain_every
    if every and block % every == 0:
        found += [
            Turn(len(found) + n, arm, EXPLAIN, chance.randrange(_MOST_PADDING))
            for n, arm in enumerate(drawn, 1)
        ]
    return found


def measured(experiment: Experiment, case_id: int, block: int, seed: int) -> list[Turn]:
    """The runs of a block that count, in their order, if none is rejected."""
    return [turn for turn in turns(experiment, case_id, block, 1, seed) if turn.kind == MEASURED]


def level(plan: Plan, alpha: float) -> float:
    """The level of each look, so that all of them together claim a change by chance in `alpha`."""
    return alpha if len(plan.looks) == 1 else alpha * _LEVEL_OF_A_LOOK


def comparisons(experiment: Experiment) -> int:
    """Number of comparisons of the claim."""
    return len(experiment.cases()) * (len(experiment.scenarios) - 1)


def runs_until(experiment: Experiment, look: int) -> int:
    """Number of runs of a case up to this block, if none is rejected; without the warm-up."""
    return sum(len(turns(experiment, 1, block, 1, seed=0)) for block in range(1, look + 1))


def announcement(experiment: Experiment) -> str:
    """An announcement of the runs, before the duration of a run is known."""
    plan, cases = experiment.plan, len(experiment.cases())
    dry = sum(len(turns(experiment, 1, block, 1, seed=0)) for block in range(1 - plan.dry, 1))
    least, most = (cases * (dry + runs_until(experiment, look)) for look in (plan.looks[0], plan.looks[-1]))
    runs = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    what = f"cases: {cases}, scenarios: {len(experiment.scenarios)}, runs: {runs}"
    return f"{what}; ends after {plan.minutes:g} minutes at the latest"


def time_of_case(experiment: Experiment, seconds_of_a_run: float) -> str:
    """The duration of a case, given that of a run."""
    first, last = experiment.plan.looks[0], experiment.plan.looks[-1]
    times = [human_ns(1e9 * seconds_of_a_run * runs_until(experiment, look)) for look in (first, last)]
    if first == last:
        return f"a run takes {human_ns(1e9 * seconds_of_a_run)}: about {times[0]} for {last} blocks"
    return (
        f"a run takes {human_ns(1e9 * seconds_of_a_run)}: about {times[0]} until the first look, "
        f"after {first} blocks, and {times[1]} if all {last} are needed"
    )


def lines(experiment: Experiment, seed: int, seconds_of_a_run: float | None = None) -> list[str]:
    """The plan in words: cases, scenarios, order, and its duration if a run takes this long."""
    plan, claim = experiment.plan, experiment.claim
    cases = experiment.cases()
    numbers = range(1 - plan.dry, plan.looks[-1] + 1)
    runs = len(cases) * sum(len(turns(experiment, 1, block, 1, seed)) for block in numbers)
    looks = ", ".join(map(str, plan.looks))
    found = [
        f"claim: {claim.primary}, {claim.better} is better; margin {100 * claim.margin:g} %, "
        f"level {claim.alpha:g}",
        f"cases: {len(cases)}; scenarios: {', '.join(arms(experiment))} (baseline: {plan.baseline})",
        f"blocks: {plan.dry} to warm up, judged after {looks}; at most {runs:,} runs",
    ]
    if len(plan.looks) > 1:
        found.append(f"level of each look: {level(plan, claim.alpha):g}")
    if (count := comparisons(experiment)) > 1:
        found.append(f"comparisons of the claim: {count}, adjusted by Holm's method")
    if seconds_of_a_run is not None:
        found.append(
            f"time: about {runs * seconds_of_a_run / 60:.0f} minutes, stopped after {plan.minutes:g}"
        )
    found += [f"seed: {seed}; order of the first blocks:"]
    for case in cases[:3]:
        for block in range(1, min(3, plan.looks[-1]) + 1):
            names = " ".join(turn.scenario for turn in measured(experiment, case.case_id, block, seed))
            found.append(f"  case {case.case_id}, block {block}: {names}")
    return found
