"""Crash dumps of guests whose tasks are known."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sysdock.dump.testing import Truth, read_truth

ROOT = Path(__file__).resolve().parents[3]


@dataclass
class MadeDump:
    """A dump, and what the guest said of itself before it died."""

    folder: Path
    truth: Truth

    @property
    def core(self) -> Path:
        return self.folder / "core"

    @property
    def files(self) -> dict[tuple[int, str], str]:
        """Files of /proc by task (0: of none) and name."""
        return self.truth.files

    @property
    def started(self) -> dict[str, list[int]]:
        """Tasks that were started, by name."""
        return self.truth.started

    def console(self) -> list[str]:
        """What the kernel wrote to its console, without times."""
        lines = (self.folder / "console.log").read_text("utf-8", errors="replace").splitlines()
        return [found[1] for line in lines if (found := re.match(r"\[ *\d+\.\d+\] (.*)", line.rstrip()))]


def make_once(factory: pytest.TempPathFactory, name: str, *words: str) -> MadeDump:
    """The dump of that name, made by the first test that needs it, also if tests run in parallel."""
    root = factory.getbasetemp()
    folder = (root.parent if "PYTEST_XDIST_WORKER" in os.environ else root) / "dumps" / name
    folder.parent.mkdir(exist_ok=True)
    with open(folder.with_name(f"{name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / "made").exists():
            return MadeDump(folder, read_truth(folder / "truth.log"))
        made = make(folder, *words)
        (folder / "made").touch()
        return made


def make(folder: Path, *words: str) -> MadeDump:
    """Boots a guest, and takes its dump; some fifteen seconds, and the time that the kernel takes to download."""
    command = [ROOT / "tools" / "make-dump", *words, "-o", folder]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return MadeDump(folder, read_truth(folder / "truth.log"))


@contextlib.contextmanager
def live_guest(folder: Path, version: str) -> Iterator[str]:
    """A guest that has written down what it says of itself, and runs on; then its dump is made."""
    command = [ROOT / "tools" / "make-dump", version, "--panic", "none", "-o", folder]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as maker:
        try:
            lines: list[str] = []
            for line in maker.stdout or ():
                lines.append(line)
                if line.startswith("live: "):
                    yield line.removeprefix("live: ").strip()
                    break
            else:
                raise AssertionError("".join(lines))
        finally:
            maker.communicate()
    assert maker.returncode == 0
