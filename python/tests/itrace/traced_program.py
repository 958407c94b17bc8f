"""A recording of a program's instructions, and what its recorder said."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Recording


class Traced:
    """A recording of `itrace attach` or `itrace user`, and what was said."""

    def __init__(self, native: Path, folder: Path, done: subprocess.CompletedProcess[str]) -> None:
        self.native, self.folder, self.done = native, folder, done

    def fetch(self, sql: str) -> list[Any]:
        with Session(Recording.open(self.folder), Library()) as session:
            return session.fetch(sql)

    def steps(self) -> tuple[int, int]:
        [found] = self.fetch("SELECT steps, steps_collapsed FROM traced_requests")
        return tuple(found)

    def instructions(self, *options: str) -> list[dict[str, Any]]:
        words = [self.native, "itrace", "dump", "--format", "json", "--limit", "0", *options, self.folder]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def lines(self) -> list[str]:
        words = [self.native, "itrace", "decode", self.folder]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()

    def manifest(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / "recording.json").read_text())
        return content
