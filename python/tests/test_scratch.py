"""Temporary folders are removed whenever a signal comes."""

import signal
import tempfile
from pathlib import Path

import pytest
from sysdock.scratch import scratch_folder


@pytest.mark.parametrize("moment", ["while it is made", "in use"])
def test_a_folder_goes_with_an_interrupted_command(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def mkdtemp(*arguments: object, **named: object) -> str:
        made.append(original(*arguments, **named))
        if moment == "while it is made":
            signal.raise_signal(signal.SIGINT)
        return made[0]

    original = tempfile.mkdtemp
    monkeypatch.setattr(tempfile, "mkdtemp", mkdtemp)
    with pytest.raises(KeyboardInterrupt):
        fill_and_interrupt(tmp_path)
    assert made
    assert not list(tmp_path.iterdir())


def fill_and_interrupt(within: Path) -> None:
    with scratch_folder(within) as folder:
        Path(folder, "of-the-engine").write_text("spilled")
        signal.raise_signal(signal.SIGINT)
