"""What the workloads of one case share: its folder, what they made, and what they measured."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from sysdock.library import Library


@dataclass
class Bench:
    """One case in `folder`. What a workload opens goes into `opened`, and is closed when the case ends.

    `results` are rows of the table `experiment_results`, `facts` of the table `environment`.
    """

    case_id: int
    folder: Path
    scans: Path
    rounds: int
    library: Library
    opened: ExitStack
    results: list[tuple[int, str, str, int | None, str, float]] = field(default_factory=list)
    facts: list[tuple[str, str, str | None, str]] = field(default_factory=list)
    device: Path | None = None
    mount_point: Path | None = None

    def measured(self, state: str, subject: str, round_: int | None, measure: str, value: float) -> None:
        """A number that was measured, counted or predicted."""
        self.results.append((self.case_id, state, subject, round_, measure, value))

    def fact(self, section: str, name: str, value: str | None) -> None:
        """Something about the machine or what was made on it."""
        self.facts.append((section, name, value, "recorder"))
