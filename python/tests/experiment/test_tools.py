"""Other people's programs: none runs on after an interrupt, at whatever moment it comes."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from sysdock.errors import UserError
from sysdock.experiment import tools
from sysdock.experiment.tools import run_tool


@pytest.fixture(autouse=True)
def interruptible() -> None:
    """A shell starts what it puts in the background with SIGINT ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_what_it_prints_is_returned_and_what_it_complains_of_raised() -> None:
    assert run_tool("echo", "a", Path("b")) == "a b\n"
    with pytest.raises(UserError, match="No such file"):
        run_tool("ls", "/nowhere")


def test_an_interrupt_while_it_is_being_started_ends_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started = []

    class Interrupted(subprocess.Popen):
        """Ctrl-C comes when the program runs and its caller does not yet know it."""

        def __init__(self, *arguments: object, **options: object) -> None:
            super().__init__(*arguments, **options)
            started.append(self.pid)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(tools.subprocess, "Popen", Interrupted)
    late = tmp_path / "late"
    with pytest.raises(KeyboardInterrupt):
        run_tool("sh", "-c", f"sleep 0.3; touch {late}; sleep 60")
    assert not Path(f"/proc/{started[0]}").exists()
    time.sleep(0.5)
    assert not late.exists()
