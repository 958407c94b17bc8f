"""Runs the command line as a user does: in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = str(Path(__file__).resolve().parents[2])


class Cli:
    """Runs `sysdock` in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "PYTHONPATH": PACKAGE, "LC_ALL": "C.UTF-8", "TZ": "UTC"}

    def command(self, *arguments: object) -> list[str]:
        """The command of `sysdock ARGUMENTS`."""
        return [sys.executable, "-m", "sysdock", *map(str, arguments)]

    def __call__(self, *arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        environment = {**self.environment, **options.pop("env", {})}
        return subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            **options,
        )

    def start(self, *arguments: object, **options: object) -> subprocess.Popen[str]:
        """Starts it without waiting."""
        return subprocess.Popen(
            self.command(*arguments), cwd=self.folder, env=self.environment, text=True, **options
        )


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """`sysdock`, in the test's folder."""
    return Cli(tmp_path)
