"""Which rules cannot find anything in a recording, because it is too short or has too few rows for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sysdock.analysis.session import Session
from sysdock.library import Analysis
from sysdock.library.header import TIMES
from sysdock.sentences import Words, fact


def too_little(session: Session, rule: Analysis, values: Mapping[str, Any]) -> Words | None:
    """The facts that state that the recording is too small for a finding of `rule`, by `at_least:`.

    None where the SQL has to decide: also where a table is empty or the recording incomplete, as the rule may
    then be inconclusive. Filters only take rows away. `values`: those of the parameters.
    """
    if not rule.at_least or not _is_whole(session, rule):
        return None
    for line in rule.at_least:
        least = min(values[name] for name in line.params)
        held = _held(session, line.quantity)
        if held is not None and held < least:
            return _sentence(line.quantity, held, least)
    return None


def _is_whole(session: Session, rule: Analysis) -> bool:
    """Whether all that the rule reads was recorded to the end, and is there."""
    recording = session.recording
    tables = [name for name in session.library.sources(rule.needs) if not session.library.table(name).sql]
    stored = [name for name in tables if session.library.table(name).stored]
    return (
        not recording.days_of_sums
        and all(capture["complete"] for capture in recording.captures)
        and all(name in recording.tables and recording.rows(name) for name in stored)
    )


def _held(session: Session, quantity: str) -> int | None:
    """The amount in the recording; None if it is unknown."""
    recording = session.recording
    if quantity not in TIMES:
        return recording.rows(quantity) if quantity in recording.tables else None
    if not (recording.has_clock and recording.has_durations):
        return None
    threads = 1
    if quantity == "thread_time":
        if "processes" not in recording.tables:
            return None
        threads = recording.rows("processes")
    duration: int = recording.manifest["duration_ns"]
    return duration * threads or None


def _sentence(quantity: str, held: int, least: float) -> Words:
    if quantity not in TIMES:
        return fact("diagnosis/too_few_rows", table=quantity, recorded=held, needed=least)
    code = "too_short" if quantity == "duration" else "too_little_thread_time"
    return fact(f"diagnosis/{code}", recorded=held, needed=least)
