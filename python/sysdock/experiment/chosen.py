"""What was chosen for the run of an experiment: `plan.json` of its recording, which may be a stranger's."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sysdock.errors import UserError, refusal
from sysdock.library import Experiment
from sysdock.sentences import fact

PLAN = "plan.json"
_MOST_BLOCKS = 1000
_MOST_SEED = 1 << 64


def read_chosen(folder: Path) -> dict[str, Any]:
    """The choices, each of its type; UserError for a file that has others."""
    place = folder / PLAN
    try:
        found = json.loads(place.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        raise _damaged(place) from None
    if not isinstance(found, dict) or not all(fits(found.get(key)) for key, fits in _KINDS.items()):
        raise _damaged(place)
    return found


def applied(experiment: Experiment, chosen: Mapping[str, Any]) -> Experiment:
    """The experiment as it was chosen; UserError for a parameter that it does not have."""
    for name, texts in chosen["set"]:
        experiment = experiment.with_values(name, texts)
    if chosen["blocks"]:
        experiment = experiment.with_blocks(chosen["blocks"])
    if chosen["busy"]:
        experiment = experiment.on_busy_machine()
    return experiment.explained() if chosen["explain"] else experiment


def _damaged(place: Path) -> UserError:
    return refusal(fact("experiment/damaged_plan"), fact("experiment/run_it_again"), str(place))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_number(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < most


def _is_setting(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and isinstance(value[0], str)
        and isinstance(value[1], list)
        and value[1] != []
        and all(isinstance(text, str) for text in value[1])
    )


_KINDS: dict[str, Callable[[Any], bool]] = {
    "command": _is_text,
    "id": _is_text,
    "seed": lambda value: _is_number(value, _MOST_SEED),
    "set": lambda value: isinstance(value, list) and all(map(_is_setting, value)),
    "blocks": lambda value: value is None or _is_number(value, _MOST_BLOCKS + 1),
    "busy": _is_flag,
    "explain": _is_flag,
    # Not in older recordings.
    "as_root": lambda value: value is None or _is_flag(value),
}
