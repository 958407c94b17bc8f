"""Series of probes with a known truth, and a stand-in for the generator of load."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

sys.path.insert(0, str(Path(__file__).parent))

from sysdock.cli import sysdock
from sysdock.probe import measuring
from sysdock.recording import native


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """The generator is replaced by one that is quick; call it with `fail`, `hang` or `kill` to have it misbehave."""
    program = tmp_path / "stand-in"
    package = Path(measuring.__file__).resolve().parents[2]
    script = Path(__file__).with_name("stand_in.py")
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{package}" exec "{sys.executable}" "{script}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(native, "find_native", lambda: program)
    return lambda behaviour: monkeypatch.setenv("SYSDOCK_STAND_IN", behaviour)


@pytest.fixture
def call() -> Callable[..., Result]:
    """Runs `sysdock probe` with these words; errors are raised."""

    def run(*words: str | Path) -> Result:
        return CliRunner().invoke(
            sysdock, ["probe", *map(str, words)], catch_exceptions=False, standalone_mode=False
        )

    return run
