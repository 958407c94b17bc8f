"""Whether an experiment can be run: its steps name workloads that exist, and give them what they need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sysdock.experiment.disk_workloads  # noqa: F401  its workloads are known by being defined
from sysdock.errors import did_you_mean
from sysdock.experiment.tools import find_tool
from sysdock.experiment.workload import WORKLOADS, Workload, misfit
from sysdock.library import Experiment, Library, Step


def problems(library: Library, experiment: Experiment) -> list[str]:
    """What is wrong with an experiment beside the form of its file."""
    found = list(_of_steps(experiment))
    if experiment.analysis not in {analysis.id for analysis in library.analyses()}:
        found.append(f"there is no analysis `{experiment.analysis}`")
    return found


def missing_tools(experiment: Experiment) -> list[str]:
    """Programs that some case needs and this machine lacks."""
    needed: dict[str, None] = {}
    for case in experiment.cases():
        for step in experiment.steps:
            known = WORKLOADS[step.workload]
            needed.update(dict.fromkeys(known.tools(**known.taken({**case, **step.arguments}))))
    return [tool for tool in needed if not find_tool(tool)]


def _of_steps(experiment: Experiment) -> Iterator[str]:
    used: set[str] = set()
    for number, step in enumerate(experiment.steps, 1):
        known = WORKLOADS.get(step.workload)
        if known is None:
            hint = did_you_mean(step.workload, WORKLOADS, f"the workloads are {', '.join(WORKLOADS)}")
            yield f"step {number}: there is no workload `{step.workload}` ({hint})"
            continue
        used.update(known.arguments)
        for what in _of_arguments(experiment, step, known):
            yield f"step {number}, {step.workload}: {what}"
    for parameter in experiment.parameters:
        if parameter.name not in used:
            yield f"no workload of the steps takes the parameter `{parameter.name}`"


def _of_arguments(experiment: Experiment, step: Step, known: Workload) -> Iterator[str]:
    values: dict[str, tuple[Any, ...]] = {
        parameter.name: parameter.values for parameter in experiment.parameters
    }
    values.update({name: (value,) for name, value in step.arguments.items()})
    for name in step.arguments:
        if name not in known.arguments:
            yield f"it takes no `{name}`, but {', '.join(known.arguments) or 'nothing'}"
    for name, kind in known.arguments.items():
        if name not in values:
            yield f"it needs `{name}`, from a parameter or the step"
        for value in values.get(name, ()):
            if wanted := misfit(kind, value):
                yield f"`{name}` is {value!r} and should be {wanted}"
