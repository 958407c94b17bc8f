"""Runs the command line as a user does: in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import fork_server
import pytest


class Cli:
    """Runs `sysdock` in a folder: forked where how Python starts does not matter, otherwise started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = fork_server.environment()

    def command(self, *arguments: object) -> list[str]:
        """The command of `sysdock ARGUMENTS`."""
        return [sys.executable, "-m", "sysdock", *map(str, arguments)]

    def __call__(
        self, *arguments: object, env: Mapping[str, str] | None = None, input: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        environment = {**self.environment, **(env or {})}
        return fork_server.run(*arguments, cwd=self.folder, env=environment, input=input)

    def start(self, *arguments: object, **options: object) -> subprocess.Popen[str]:
        """Starts Python with it, without waiting."""
        return subprocess.Popen(
            self.command(*arguments), cwd=self.folder, env=self.environment, text=True, **options
        )

    def process(self, *arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        """Starts Python with it, and waits for its end."""
        return subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            **options,
        )


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """`sysdock`, in the test's folder."""
    return Cli(tmp_path)
