"""A command notices nothing of being recorded, and nobody who waits for it: each case bare, and below each recorder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from recorders import Recorder
from sampling import some
from transparency import CASES, Case, Outcome

# What a case shows without a recorder; both are compared with it.
BARE: dict[str, Outcome] = {}


@pytest.mark.parametrize("case", some(CASES, 3), ids=lambda case: case.name)
def test_nothing_differs(recorder: Recorder, case: Case, tmp_path: Path) -> None:
    if case.name not in BARE:
        BARE[case.name] = case.run(list, tmp_path / "bare" / "work")
    out = tmp_path / "rec"

    def below(command: Sequence[str]) -> Sequence[str]:
        return [str(word) for word in recorder.command(out, *command)]

    recorded = case.run(below, tmp_path / "recorded" / "work")
    assert differences(BARE[case.name], recorded) == {}


def differences(bare: Outcome, recorded: Outcome) -> dict[str, tuple[object, object]]:
    """What differs: name -> bare, recorded. Of what a program found out, fact by fact."""
    facts = [vars(outcome) | found_out(outcome) for outcome in (bare, recorded)]
    return {
        name: (facts[0].get(name), facts[1].get(name))
        for name in {**facts[0], **facts[1]}
        if facts[0].get(name) != facts[1].get(name)
    }


def found_out(outcome: Outcome) -> dict[str, object]:
    """What observe.py wrote, in place of its text; nothing of other commands."""
    if not outcome.out.startswith(b"{"):
        return {}
    end = outcome.out.rindex(b"}") + 1
    return json.loads(outcome.out[:end]) | {"out": outcome.out[end:]}
