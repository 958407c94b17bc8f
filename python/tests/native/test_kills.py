"""One process of a recording is killed at a random moment: the command runs on, and what was recorded can be read. `tools/break kills` runs more."""

from __future__ import annotations

from pathlib import Path

import pytest
from kills import KINDS, Kills, Kind
from recorders import recorder_or_skip

# test_killed_recorder.py is what each change runs.
pytestmark = pytest.mark.more
TRIALS = 2
# Within some milliseconds, half of which do no harm.
EARLY_TRIALS = 6


@pytest.fixture(scope="module")
def kills(native: Path, tmp_path_factory: pytest.TempPathFactory) -> Kills:
    """Trials in a folder of their own."""
    return Kills(native, tmp_path_factory.mktemp("kills"))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kill_leaves_the_command_and_what_was_recorded(kills: Kills, kind: Kind, native: Path) -> None:
    recorder_or_skip(native, kind.recorder)
    trials = [kills.run(kind, number) for number in range(EARLY_TRIALS if kind.early else TRIALS)]
    assert [(trial.number, trial.faults) for trial in trials if trial.faults] == []
