"""Runs the generator, and looks at what it leaves behind."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sysdock.recording.native import find_native


@dataclass
class Ran:
    """What a run came to."""

    status: int
    said: str
    rows: list[dict[str, Any]]

    def only(self) -> dict[str, Any]:
        """Its row, where there is one."""
        assert len(self.rows) == 1, (self.rows, self.said)
        return self.rows[0]


def command(directory: Path, *options: str) -> list[str]:
    """The command line of a load."""
    return [str(find_native()), "load", str(directory), *options]


def load(directory: Path, *options: str, before: Sequence[str] = (), **more: Any) -> Ran:
    """Runs it to its end. `before`: a program that starts it."""
    words = [*before, *command(directory, *options, "--rows")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600, **more)
    return Ran(done.returncode, done.stderr, [json.loads(line) for line in done.stdout.splitlines()])


def left(directory: Path) -> list[str]:
    """What is in a directory, hidden names as well."""
    return sorted(os.listdir(directory))
