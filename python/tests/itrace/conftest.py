"""Programs whose instructions are traced."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture
def built(tmp_path: Path) -> Callable[..., Path]:
    """A program from a file of this folder."""

    def build(name: str, *options: str) -> Path:
        program = tmp_path / name.partition(".")[0]
        subprocess.run(["cc", "-g", *options, "-o", program, HERE / name], check=True)
        return program

    return build
