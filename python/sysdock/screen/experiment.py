"""Experiments as text: what one would do, its verdicts, and what differs between its scenarios."""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sysdock.experiment.outcomes import number, of_verdict
from sysdock.sentences import languages, say
from sysdock.text import human_ns, printable

if TYPE_CHECKING:
    from sysdock.experiment.results import RunRow
    from sysdock.library.experiments import Experiment

# Causes of a scenario that are shown.
_MOST_CAUSES = 6


def described(experiment: Experiment) -> list[str]:
    """What the experiment asks, and what it would do."""
    lines = [experiment.title, "", experiment.question, ""]
    for parameter in experiment.parameters:
        values = ", ".join(map(str, parameter.values))
        lines.append(f"  {parameter.name} = {values}{f' {parameter.unit}' if parameter.unit else ''}")
        lines.append(f"      {parameter.text}")
    lines += ["", f"scenarios (baseline: {experiment.plan.baseline}):"]
    lines += [f"  {each.name}: {each.text}" for each in experiment.scenarios]
    if experiment.prepare:
        lines += ["", "prepared for each case:"]
        lines += [f"  {number}. {step.text}" for number, step in enumerate(experiment.prepare, 1)]
    lines += ["", "measured in each block:"]
    lines += [f"  {each.name}: {shlex.join(each.run)}" for each in experiment.workloads]
    looks = ", ".join(map(str, experiment.plan.looks))
    lines += [
        "",
        f"{len(experiment.cases())} cases, {looks} blocks; results: sysdock show REC {experiment.analysis}",
    ]
    return lines


def verdict_lines(rows: Sequence[dict[str, Any]], experiment: Experiment) -> list[str]:
    """The verdict on the main number of each scenario."""
    found = []
    for row in rows:
        if row["is_primary"] and row["scenario"] != "A/A":
            sentence = say(of_verdict(row, experiment.claim.margin), languages()[0])
            place = ", ".join(word for word in (row["workload"], row["parameters"], row["scenario"]) if word)
            found.append(f"{place}: {sentence}")
    return found


def run_lines(
    experiment: Experiment, runs: Sequence[RunRow], verdicts: Sequence[Mapping[str, Any]]
) -> list[str]:
    """How long each command took, and the verdicts on them; `runs`: those that count."""
    width = max(len(each.text) for each in experiment.scenarios)
    found = []
    for each in experiment.scenarios:
        times = [row.dur_ns for row in runs if row.scenario == each.name]
        middle, least, most = (human_ns(int(t)) for t in (statistics.median(times), min(times), max(times)))
        figures = f"{len(times)} runs, median {middle} ({least} to {most})"
        found.append(f"{each.name}  {printable(each.text):<{width}}  {figures}")
    found.append("")
    for row in verdicts:
        sentence = say(of_verdict(row, experiment.claim.margin), languages()[0])
        found.append(f"{row['scenario']} against {experiment.plan.baseline}: {sentence}")
    return found


def cause_lines(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Rows of `experiment/causes` in words: what differs, of each scenario. Nothing without such runs."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        place = tuple(row[key] or "" for key in ("workload", "parameters", "scenario"))
        groups.setdefault(place, []).append(row)
    for place, some in groups.items():
        if place[-1] != "A/A":
            yield ""
            runs = f"{some[0]['blocks']} blocks under the recorder"
            yield f"{', '.join(word for word in place if word)}: what differs from the baseline, by {runs}"
            yield from _causes(some)


def _causes(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows of `experiment/causes` of one scenario and case as lines of a table; the remainder comes last."""
    shown = [*rows[: _MOST_CAUSES - 1], *rows[-1:]] if len(rows) > _MOST_CAUSES else rows
    width = max((len(f"{row['kind']}: {row['name']}") for row in shown), default=0)
    found = []
    for row in shown:
        share = "" if row["share"] is None else f"{100 * row['share']:5.0f} % of the difference"
        what = f"{row['kind']}: {row['name']}"
        found.append(f"  {what:<{width}}  {_difference(row):>14}  {share}".rstrip())
    if len(shown) < len(rows):
        found.insert(-1, f"  ... and {len(rows) - len(shown)} more")
    return found


def _difference(row: Mapping[str, Any]) -> str:
    value, unit = row["difference_per_unit"], row["unit"]
    sign = "-" if value < 0 else "+"
    if unit == "ns":
        return sign + human_ns(round(abs(value)))
    return f"{sign}{number(abs(value))} {unit}"
