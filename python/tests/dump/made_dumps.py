"""Crash dumps of guests whose tasks are known."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

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


def make(folder: Path, *words: str) -> MadeDump:
    """Boots a guest, and takes its dump; some fifteen seconds, and the time that the kernel takes to download."""
    command = [ROOT / "tools" / "make-dump", *words, "-o", folder]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return MadeDump(folder, read_truth(folder / "truth.log"))
