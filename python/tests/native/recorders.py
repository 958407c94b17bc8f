"""The recorders of `sysdock-native record`: which there are, and whether they can run here."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Recorder:
    """One way to record."""

    native: Path
    name: str

    @property
    def options(self) -> list[str]:
        """What `record` is told to record this way."""
        return ["--with", self.name] if knows_with(self.native) else []

    def command(self, out: Path, *command: Path | str, options: tuple[str, ...] = ()) -> list[Path | str]:
        """The command line that records a command."""
        return [self.native, "record", *self.options, "-o", out, *options, "--", *command]

    def record(
        self, out: Path, *command: Path | str, recorder_options: tuple[str, ...] = (), **options: object
    ) -> subprocess.CompletedProcess:
        """Record a command, and wait."""
        options = {"capture_output": True, "text": True, "timeout": 600} | options
        return subprocess.run(self.command(out, *command, options=recorder_options), **options)


RECORDERS = ["strace", "kernel"]


def recorder_or_skip(native: Path, name: str) -> Recorder:
    """The recorder, or the reason why its tests cannot run here."""
    import pytest  # where recordings are only made there is none

    recorder = Recorder(native, name)
    refusal = refusal_of(recorder)
    if refusal:
        pytest.skip(f"the {name} recorder cannot run here: {refusal}")
    return recorder


@functools.cache
def knows_with(native: Path) -> bool:
    """Whether there is a choice."""
    done = subprocess.run([native, "record", "--help"], capture_output=True, text=True, check=True)
    return "--with" in done.stdout


@functools.cache
def refusal_of(recorder: Recorder) -> str | None:
    """Why nothing can be recorded this way here. None: it can."""
    if recorder.name != "strace" and not knows_with(recorder.native):
        return "sysdock-native was built without it"
    with tempfile.TemporaryDirectory() as folder:
        done = recorder.record(Path(folder) / "rec", "/bin/true")
    return None if done.returncode == 0 else done.stderr.strip().splitlines()[0]


def kernel_of(recording: Path, query: Callable[[Path, str], list[tuple]]) -> tuple[int, int]:
    """Version of the kernel that a recording was made on, such as (6, 12)."""
    [(release,)] = query(
        recording, "SELECT value FROM environment WHERE section = 'kernel' AND name = 'release'"
    )
    major, minor = release.split(".")[:2]
    return int(major), int(minor)
