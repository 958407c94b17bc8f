"""Moments that matter for the whole recording (the table `marks`): what made a flight recorder write it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sysdock.sentences import Words, fact, facts_from_json

if TYPE_CHECKING:
    from sysdock.analysis.session import Session

# More would hide a chart.
MOST = 20


@dataclass(frozen=True)
class Mark:
    """A mark. `at_ns`: since the start of the recording; `what`: facts, or the text of an older recording."""

    at_ns: int
    what: Words

    @property
    def words(self) -> Words:
        """What it was, with its time."""
        return fact("diagnosis/mark_after_start", mark=self.what, at=self.at_ns)


def marks_of(session: Session) -> list[Mark]:
    """The first marks in the range of time that is shown, by time; at most `MOST`."""
    if "marks" not in session.recording.tables:
        return []
    start = session.recording.manifest["started_ns"]
    rows = session.fetch(f"SELECT ts_ns, text FROM marks ORDER BY ts_ns LIMIT {MOST}")
    return [Mark(ts_ns - start, facts_from_json(text)) for ts_ns, text in rows]
