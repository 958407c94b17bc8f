"""Crash dumps of guests whose tasks are known."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


@dataclass
class MadeDump:
    """A dump, and what the guest said of itself before it died."""

    folder: Path
    # Files of /proc by task (0: of none) and name.
    files: dict[tuple[int, str], str] = field(default_factory=dict)
    # Tasks that were started, by name.
    started: dict[str, list[int]] = field(default_factory=dict)

    @property
    def core(self) -> Path:
        return self.folder / "core"

    def console(self) -> list[str]:
        """What the kernel wrote to its console, without times."""
        lines = (self.folder / "console.log").read_text("utf-8", errors="replace").splitlines()
        return [found[1] for line in lines if (found := re.match(r"\[ *\d+\.\d+\] (.*)", line.rstrip()))]


def read_truth(folder: Path) -> MadeDump:
    """A folder that tools/make-dump made."""
    made = MadeDump(folder)
    place = None
    for line in (folder / "truth.log").read_text("utf-8", errors="replace").splitlines():
        if found := re.match(r"== (\d+) (\w+)$", line):
            place = int(found[1]), found[2]
            made.files[place] = ""
        elif line == "== end":
            break
        elif place:
            made.files[place] += line + "\n"
        elif found := re.match(r"([\w-]+) (\d+) \d+$", line):
            made.started.setdefault(found[1], []).append(int(found[2]))
    return made


def make(folder: Path, *words: str) -> MadeDump:
    """Boots a guest, and takes its dump; some fifteen seconds, and the time that the kernel takes to download."""
    command = [ROOT / "tools" / "make-dump", *words, "-o", folder]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return read_truth(folder)
