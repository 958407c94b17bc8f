"""A command notices nothing of being recorded, and nobody who waits for it: each case bare, and below each recorder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from recorders import Recorder
from sampling import some
from transparency import CASES, Case, Outcome, differences

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
