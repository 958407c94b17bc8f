"""Which experiments run without `--trust`, and what one that needs it would do.

What comes with sysdock is trusted as a whole: its text, and what a recording's plan sets. A recording may be
a stranger's, so a value of its plan must be one that the experiment declares, and its text is only compared
with ours: it is our own file that runs.
"""

from __future__ import annotations

import getpass
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sysdock.errors import UserError, refusal
from sysdock.experiment.chosen import applied
from sysdock.experiment.preparation import PREPARATIONS
from sysdock.library import Case, Experiment, Library
from sysdock.library.experiments import Step, filled
from sysdock.recording.native import find_native
from sysdock.sentences import fact, languages, say

# The user that servers run as where an experiment names none.
OF_ITS_OWN = ""


def files_of(experiment: Experiment) -> dict[str, str]:
    """The files in the folder next to the experiment's own."""
    return {name: step.arguments["files"][name] for step in experiment.prepare for name in step.read}


def own_experiment(kept: Experiment, options: Mapping[str, Any], library: Library) -> Experiment | None:
    """Our own experiment that a recording repeats, as its plan changes it; None where `--trust` is needed."""
    own = next((each for each in library.experiments() if each.id == kept.id), None)
    if own is None or not library.is_own or _content(own) != _content(kept):
        return None
    chosen = applied(own, options)
    return None if own.undeclared(chosen) else chosen


def _content(experiment: Experiment) -> tuple[bytes, dict[str, str]]:
    return experiment.path.read_bytes(), files_of(experiment)


def refused(experiment: Experiment, folder: Path, place: str, library: Library) -> UserError:
    """The error that asks for `--trust`, with all that would be run and set."""
    why = fact("experiment/needs_trust", user=_user(), actions=_listed(experiment, folder, library))
    return refusal(why, fact("experiment/give_trust"), place)


def trusted(experiment: Experiment, folder: Path, library: Library) -> str:
    """What an experiment runs and sets that was trusted, for people."""
    words = _listed(experiment, folder, library)
    return say(fact("experiment/trusted", user=_user(), actions=words), languages()[0])


def _listed(experiment: Experiment, folder: Path, library: Library) -> str:
    lines = dict.fromkeys([*_of_environment(library), *actions(experiment, folder)])
    return "\n".join(f"  {line}" for line in lines)


def _of_environment(library: Library) -> Iterator[str]:
    """Programs by which a pack of somebody else defines what is recorded of the machine."""
    for section in [] if library.is_own else library.environment():
        yield from (shlex.join(field.command) for field in section.fields if field.command)


def _user() -> str:
    try:
        return getpass.getuser() if os.geteuid() else "root"
    except (KeyError, OSError):
        return str(os.geteuid())


def actions(experiment: Experiment, folder: Path) -> Iterator[str]:
    """Each command, server and setting in its order, filled as far as values are known before the start."""
    for case in experiment.cases():
        names = _names(case, folder)
        for step in experiment.prepare:
            yield from _of_step(step, case, names)
        for scenario in experiment.scenarios:
            own = {**names, **experiment.levels(scenario)}
            for setting, value in experiment.settings_of(scenario, own).items():
                yield f"{setting} = {value}"
            workload = case.workload
            for command in (*workload.before, workload.run, *workload.check, *workload.after):
                yield _in_words(command, own)


def _names(case: Case, folder: Path) -> dict[str, object]:
    scratch = (folder / f"case-{case.case_id:03}").resolve()
    programs = {"python": sys.executable, "native": find_native(), "cpus": os.cpu_count() or 1}
    return {"scratch": scratch, **programs, **case.values}


def _of_step(step: Step, case: Case, names: Mapping[str, object]) -> Iterator[str]:
    if step.do is None:
        yield _in_words(step.run or (), names)
        return
    known = PREPARATIONS.get(step.do)
    given = known.taken({**case.values, **step.arguments}) if known else step.arguments
    shown = {name: _shown(name, value) for name, value in given.items()}
    command = f"{step.do}: {', '.join(f'{name} = {value}' for name, value in shown.items())}"
    if known is None or not known.starts_server:
        yield command
        return
    if "command" in given:
        command = _in_words(tuple(map(str, given["command"])), names)
    user = str(given.get("user", OF_ITS_OWN)) or say(fact("experiment/user_of_its_own"), languages()[0])
    name = str(given.get("name", known.defaults.get("name")))
    yield say(fact("experiment/starts_server", name=name, user=user, command=command), languages()[0])


def _in_words(command: tuple[str, ...], names: Mapping[str, object]) -> str:
    return shlex.join(filled(word, names) for word in command)


def _shown(name: str, value: Any) -> Any:
    """A value of a step; of files that it writes, their names."""
    return sorted(value) if name == "files" and isinstance(value, dict) else value
