"""State shared by the steps of one case: its folder, what they made, and values of placeholders."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sysdock.errors import UserError, did_you_mean
from sysdock.experiment.state import State
from sysdock.library import Library


@dataclass
class Bench:
    """One case. What a preparation makes is made through `state`, and removed when the case ends.

    `names`: what `{name}` stands for in commands. `devices`: block devices that are counted in each run.
    `facts` are rows of `experiment_facts`, `environment` of the table of that name.
    """

    case_id: int
    scratch: Path
    scans: Path
    library: Library
    state: State
    names: dict[str, object]
    devices: list[str] = field(default_factory=list)
    facts: list[tuple[int, str, str, float]] = field(default_factory=list)
    environment: list[tuple[str, str, str | None, str]] = field(default_factory=list)

    def fact(self, subject: str, name: str, value: float) -> None:
        """A number that is known once for the case."""
        self.facts.append((self.case_id, subject, name, value))

    def about(self, section: str, name: str, value: str | None) -> None:
        """Something about the machine or what was made on it."""
        self.environment.append((section, name, value, "recorder"))

    def place(self, name: str) -> Path:
        """The folder that an earlier step made under that name."""
        if name not in self.names:
            hint = did_you_mean(name, map(str, self.names), "make it in an earlier step of `prepare`")
            raise UserError(f"a step needs `{name}`, which no earlier step created", hint)
        return Path(str(self.names[name]))
