"""Crash dumps of guests, made once for all tests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sysdock.analysis import Session
from sysdock.recording import Recording

sys.path.insert(0, str(Path(__file__).parent))

from made_dumps import MadeDump, make_once


@pytest.fixture(scope="session")
def panics(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., MadeDump]:
    """Makes the dump of a kernel that did not stop because somebody asked it to."""

    def make(kind: str, version: str) -> MadeDump:
        return make_once(tmp_path_factory, f"{kind}-{version}", version, "--panic", kind)

    return make


@pytest.fixture
def read(tmp_path: Path, native: Path) -> Callable[..., Session]:
    """Reads a dump into a recording."""

    def run(core: Path, *words: str) -> Session:
        folder = tmp_path / f"rec-{len(list(tmp_path.iterdir()))}"
        subprocess.run([native, "dump", "run", core, "-o", folder, *words], check=True, capture_output=True)
        return Session(Recording.open(folder))

    return run


class Dumps(dict[str, MadeDump]):
    """By version of the kernel: made when the first test asks for it."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        super().__init__()
        self._factory = factory

    def __missing__(self, version: str) -> MadeDump:
        option = {"6.1": "--compressed", "6.12": "--no-kaslr"}[version]
        self[version] = make_once(self._factory, version, version, option)
        return self[version]


@pytest.fixture(scope="session")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, MadeDump]:
    """A dump of each kernel; that of 6.1 also as makedumpfile writes it, that of 6.12 without random addresses."""
    return Dumps(tmp_path_factory)
