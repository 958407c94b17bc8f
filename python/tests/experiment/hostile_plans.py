"""Recordings of experiments that a stranger could have made: each follows from a number, and must not be trusted.

What may run without `--trust` is one of our own experiments, unchanged, with values that its file declares. That is read here
by tomllib, and not by what is tested.
"""

from __future__ import annotations

import json
import random
import shutil
import tomllib
from pathlib import Path
from typing import Any

from sysdock.errors import UserError
from sysdock.experiment.chosen import read_chosen
from sysdock.experiment.trust import files_of, own_experiment
from sysdock.experiment.values_in_code import values_in_code
from sysdock.library import Experiment, Library
from sysdock.library.experiments import parse_experiment

EVIL = (
    "x; touch evil #", "$(touch evil)", "`touch evil`", "a\nb", "-oProxyCommand=touch evil", "../../etc/shadow", "' OR 1 --", "{scratch}",
    "", "0", "-1", "1e9", "٣", "9" * 5000, "\x1b[2J", "\ud800",
)  # fmt: skip
ODD = (None, True, -1, 1.5, "x", [], {}, [[]], [["rows"]], [[1, ["1"]]], "1" * 9000)


def attack(number: int, folder: Path, library: Library) -> str | None:
    """Makes recording number N and asks whether it may run without trust; what is wrong with the answer."""
    chance = random.Random(number)
    experiment = chance.choice(library.experiments())
    is_changed = _write(chance, experiment, folder)
    try:
        options = read_chosen(folder)
        kept = parse_experiment(folder / "experiment.toml", options["id"])
        found = own_experiment(kept, options, library)
    except UserError as error:
        return None if error.fact else "an error without a word"
    except Exception as error:
        return f"{experiment.id}: {type(error).__name__}: {error}"
    if found is None:
        return None
    if is_changed:
        return f"{experiment.id}: changed, and trusted"
    return _undeclared(found) or next((f"{found.id}: {why.code}" for why in values_in_code(found)), None)


def _write(chance: random.Random, experiment: Experiment, folder: Path) -> bool:
    """The files of a recording; whether the experiment is another one than ours."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "experiment").mkdir(parents=True)
    text = experiment.path.read_text()
    files = dict(files_of(experiment))
    is_changed = chance.random() < 0.2
    if is_changed and files and chance.random() < 0.5:
        name = chance.choice(sorted(files))
        files[name] += " "
    elif is_changed:
        place = chance.randrange(len(text))
        text = text[:place] + chance.choice("x\n\"'{}#;") + text[place:]
    (folder / "experiment.toml").write_text(text)
    for name, content in files.items():
        (folder / "experiment" / name).write_text(content)
    (folder / "plan.json").write_text(json.dumps(_plan(chance, experiment)))
    return is_changed


def _plan(chance: random.Random, experiment: Experiment) -> Any:
    settings = []
    for each in chance.sample(experiment.parameters, chance.randint(0, len(experiment.parameters))):
        values = [*map(str, each.values), *EVIL, str(chance.randrange(1 << 40)), str(chance.randrange(200))]
        settings.append([each.name, chance.sample(values, chance.randint(1, 2))])
    plan: dict[str, Any] = {
        "command": "sysdock experiment run",
        "id": experiment.id,
        "seed": 1,
        "set": settings,
    }
    plan |= {"blocks": None, "busy": False, "explain": False}
    if chance.random() < 0.3:
        plan[chance.choice(list(plan))] = chance.choice(ODD)
    return plan if chance.random() < 0.97 else chance.choice(ODD)


def _undeclared(found: Experiment) -> str | None:
    declared = tomllib.loads(found.path.read_text())["parameters"] if found.parameters else {}
    for each in found.parameters:
        own = declared[each.name]
        low, high = own.get("range", (1, 0))
        for value in each.values:
            if value not in own["values"] and not (isinstance(value, int) and low <= value <= high):
                return f"{found.id}: {each.name} = {str(value)[:40]!r} is trusted"
    return None
