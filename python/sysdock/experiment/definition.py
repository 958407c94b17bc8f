"""Whether an experiment can be run: what its steps and commands name exists, and gets what it needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sysdock.experiment.disk_preparations
import sysdock.experiment.java_preparations
import sysdock.experiment.postgres_preparations
import sysdock.experiment.program_preparations
import sysdock.experiment.web_preparations  # noqa: F401  their functions are known by being defined
from sysdock.errors import did_you_mean
from sysdock.experiment.one_run import STANDARD
from sysdock.experiment.preparation import PREPARATIONS, Preparation, misfit
from sysdock.experiment.state import problems as problems_of_settings
from sysdock.experiment.tools import find_tool
from sysdock.experiment.values_in_code import values_in_code
from sysdock.library import Experiment, Library
from sysdock.library.experiments import Step, placeholders
from sysdock.sentences import languages, say

# Placeholders of every command: a folder for the runs, the folder of sysdock's Python, the CPUs.
ALWAYS = ("scratch", "python", "native", "cpus")


def problems(library: Library, experiment: Experiment) -> list[str]:
    """Problems of an experiment apart from the form of its file."""
    found = [*_of_steps(experiment), *_of_placeholders(experiment), *_of_metrics(experiment)]
    found += [say(why, languages()[0]) for why in values_in_code(experiment)]
    found += problems_of_settings(
        {factor.setting: "" for factor in experiment.factors if factor.setting} | experiment.settings
    )
    if experiment.plan.duet and any(factor.setting for factor in experiment.factors):
        found.append("a duet runs its scenarios at the same time, so they cannot differ in settings")
    if experiment.analysis not in {analysis.id for analysis in library.analyses()}:
        found.append(f"there is no analysis `{experiment.analysis}`")
    return found


def missing_tools(experiment: Experiment) -> list[str]:
    """Programs that some case needs and this machine lacks."""
    return [tool for tool in needed_tools(experiment) if not find_tool(tool)]


def programs_of(experiment: Experiment) -> list[str]:
    """Programs whose versions matter: those that are needed, and the first one of each command of a shell."""
    found = dict.fromkeys(needed_tools(experiment))
    names = [level for factor in experiment.factors if not factor.setting for level in factor.levels]
    for text in (*names, *(word for each in experiment.workloads for word in each.run[2:])):
        first = text.split()[0] if text.split() else ""
        if "{" not in first and "=" not in first and find_tool(first):
            found[first] = None
    return list(found)


def needed_tools(experiment: Experiment) -> list[str]:
    """Programs that some case needs."""
    needed: dict[str, None] = {}
    for case in experiment.cases():
        for step in experiment.prepare:
            if step.do:
                known = PREPARATIONS[step.do]
                needed.update(dict.fromkeys(known.tools(**known.taken({**case.values, **step.arguments}))))
        for words in (*(step.run for step in experiment.prepare if step.run), case.workload.run):
            if "{" not in words[0]:
                needed[words[0]] = None
    return list(needed)


def made_names(experiment: Experiment) -> set[str]:
    """Names that the steps of `prepare` give: of placeholders, also as the beginning of their names."""
    found = set()
    for step in experiment.prepare:
        known = PREPARATIONS.get(step.do or "")
        if known and "name" in known.arguments:
            found.add(str(step.arguments.get("name", known.defaults.get("name"))))
    return found


def _of_steps(experiment: Experiment) -> Iterator[str]:
    for number, step in enumerate(experiment.prepare, 1):
        if step.do is None:
            continue
        known = PREPARATIONS.get(step.do)
        if known is None:
            hint = did_you_mean(step.do, PREPARATIONS, f"the preparations are {', '.join(PREPARATIONS)}")
            yield f"step {number}: there is no preparation `{step.do}` ({hint})"
            continue
        for what in _of_arguments(experiment, step, known):
            yield f"step {number}, {step.do}: {what}"
    used = _used(experiment)
    for parameter in experiment.parameters:
        if parameter.name not in used:
            yield f"nothing uses the parameter `{parameter.name}`"
    for factor in experiment.factors:
        if factor.setting is None and factor.name not in used:
            yield f"nothing uses the factor `{factor.name}`: name a setting, or write {{{factor.name}}}"


def _used(experiment: Experiment) -> set[str]:
    found: set[str] = set()
    for step in experiment.prepare:
        if step.do in PREPARATIONS:
            found |= set(PREPARATIONS[step.do].arguments)
    for text in _texts(experiment):
        found |= placeholders(text)
    return found


def _texts(experiment: Experiment) -> Iterator[str]:
    """Everything in which placeholders are replaced."""
    for step in experiment.prepare:
        yield from step.run or ()
        for name in PREPARATIONS[step.do].filled if step.do in PREPARATIONS else ():
            words = step.arguments.get(name)
            yield from (str(word) for word in words) if isinstance(words, list) else ()
    for each in experiment.workloads:
        for words in (each.run, *each.before, *each.after, *each.check):
            yield from words
        yield each.methods or ""
    for key, value in experiment.settings.items():
        yield key
        yield value
    yield from (factor.setting for factor in experiment.factors if factor.setting)


def _of_placeholders(experiment: Experiment) -> Iterator[str]:
    known = {*ALWAYS, *(p.name for p in experiment.parameters), *(f.name for f in experiment.factors)}
    made = made_names(experiment)
    unknown = {
        name
        for text in _texts(experiment)
        for name in placeholders(text)
        if name not in known and not any(name == one or name.startswith(f"{one}_") for one in made)
    }
    for name in sorted(unknown):
        hint = did_you_mean(name, known | made, "write {{" + name + "}} for the text itself")
        yield f"nothing gives `{{{name}}}` a value ({hint})"


def _of_metrics(experiment: Experiment) -> Iterator[str]:
    for each in experiment.workloads:
        known = {*STANDARD, *(measure.name for measure in each.measures)}
        for what, name in (("primary", each.primary or experiment.claim.primary), ("units", each.units)):
            if name and name not in known:
                hint = did_you_mean(name, known, f"the metrics are {', '.join(sorted(known))}")
                yield f"workload {each.name}: `{what}` names no metric: {name} ({hint})"


def _of_arguments(experiment: Experiment, step: Step, known: Preparation) -> Iterator[str]:
    values: dict[str, tuple[Any, ...]] = {
        parameter.name: parameter.values for parameter in experiment.parameters
    }
    values.update({name: (value,) for name, value in step.arguments.items()})
    for name in step.arguments:
        if name not in known.arguments:
            yield f"it takes no `{name}`, but {', '.join(known.arguments) or 'nothing'}"
    for name, kind in known.arguments.items():
        if name not in values and name not in known.defaults:
            yield f"it needs `{name}`, from a parameter or the step"
        for value in values.get(name, ()):
            if wanted := misfit(kind, value):
                yield f"`{name}` is {value!r} and should be {wanted}"
