"""Compares two recordings: what the one did that the other did not, and what it cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from sysdock.analysis.finding import Finding
from sysdock.analysis.session import Session
from sysdock.errors import NotComputed
from sysdock.library import Column
from sysdock.sections import Section, Total, all_sections, require_about, sections_of
from sysdock.sentences import fact

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Change:
    """One thing in both recordings; None if it is in one only. Times in ns."""

    name: str
    calls_a: int | None
    calls_b: int | None
    time_a_ns: int | None
    time_b_ns: int | None
    bytes_a: int | None
    bytes_b: int | None

    @property
    def time_ns(self) -> int:
        """Additional time in the second recording [ns]."""
        return (self.time_b_ns or 0) - (self.time_a_ns or 0)

    @property
    def calls(self) -> int:
        """Number of additional calls in the second recording."""
        return (self.calls_b or 0) - (self.calls_a or 0)


@dataclass(frozen=True)
class FindingChange:
    """A rule and a subject: `gone`, `new`, or in `both`; the finding in each recording, where it is."""

    state: str
    a: Finding | None
    b: Finding | None

    @property
    def finding(self) -> Finding:
        """The one of the second recording, else the one of the first."""
        found = self.b or self.a
        assert found is not None
        return found

    @property
    def gain_ns(self) -> int:
        """Additional possible saving in the second recording [ns]."""
        return ((self.b and self.b.gain_ns) or 0) - ((self.a and self.a.gain_ns) or 0)


@dataclass(frozen=True)
class Comparison:
    """What changed from the first recording to the second.

    `lists`: by the name of their part, each by the size of the change in time; empty where one recording
    lacks what it is about. `not_computed`: by part what the engine could not compute; of it nothing is known.
    """

    totals: dict[str, tuple[Total, Total]]
    findings: list[FindingChange]
    lists: dict[str, list[Change]]
    not_computed: dict[str, NotComputed] = field(default_factory=dict)


def compare(a: Session, b: Session) -> Comparison:
    """Compares two recordings by their findings, and by what the sections that both have compare.

    Raises UserError where they have nothing in common that could be compared.
    """
    sections = [section for section in sections_of(a) if section in sections_of(b) and section.totals]
    if not sections:
        for session in (a, b):
            require_about(session, "calls")
    found = Comparison(totals={}, findings=_findings(a.diagnose(), b.diagnose()), lists={})
    for section in sections:
        try:
            found.totals.update(_totals(section, a, b))
        except NotComputed as error:
            found.not_computed["totals"] = error
    for section in all_sections():
        for part in section.compared:
            try:
                found.lists[part.name] = _changes(a, b, part.sql) if section in sections else []
            except NotComputed as error:
                found.lists[part.name], found.not_computed[part.name] = [], error
    return found


def _totals(section: Section, a: Session, b: Session) -> dict[str, tuple[Total, Total]]:
    assert section.totals
    of_a, of_b = _of(a, section.totals), _of(b, section.totals)
    # Rows in one recording only are unknown in the other.
    names = dict.fromkeys([*of_a, *of_b])
    return {name: (_or_unknown(name, of_a, of_b), _or_unknown(name, of_b, of_a)) for name in names}


def _or_unknown(name: str, own: dict[str, Total], other: dict[str, Total]) -> Total:
    return own.get(name) or replace(other[name], value=None)


def _of(session: Session, ask: Callable[[Session], Answer]) -> Answer:
    """The answer of one of the two recordings; an error names the recording."""
    try:
        return ask(session)
    except NotComputed as error:
        raise NotComputed(error.fact, error.hint, str(session.recording.folder)) from None


def _changes(a: Session, b: Session, sql: str) -> list[Change]:
    of_a, of_b = (
        {row[0]: row[1:] for row in _of(session, lambda asked: asked.fetch(sql))} for session in (a, b)
    )
    absent = (None, None, None)
    changes = []
    for name in of_a.keys() | of_b.keys():
        (calls_a, time_a, bytes_a), (calls_b, time_b, bytes_b) = (
            of_a.get(name, absent),
            of_b.get(name, absent),
        )
        changes.append(Change(name, calls_a, calls_b, time_a, time_b, bytes_a, bytes_b))
    # A damaged recording may have calls without a name.
    return sorted(changes, key=lambda change: (-abs(change.time_ns), -abs(change.calls), change.name or ""))


def _findings(a: Sequence[Finding], b: Sequence[Finding]) -> list[FindingChange]:
    """Findings of both, matched by rule and subject: new ones, gone ones, those in both."""
    of_a = {(f.rule, f.subject): f for f in a if f.status == "finding"}
    of_b = {(f.rule, f.subject): f for f in b if f.status == "finding"}
    changes = []
    for key in of_a.keys() | of_b.keys():
        state = "both" if key in of_a and key in of_b else "new" if key in of_b else "gone"
        changes.append(FindingChange(state, of_a.get(key), of_b.get(key)))
    order = ("gone", "new", "both")
    return sorted(
        changes,
        key=lambda change: (
            order.index(change.state),
            -abs(change.gain_ns),
            change.finding.rule,
            change.finding.subject or "",
        ),
    )


CHANGE_COLUMNS = (
    Column(
        "name", "VARCHAR", None, "Name of the call, or path of the file.", head=fact("comparison/head_name")
    ),
    Column(
        "time_change_ns",
        "BIGINT",
        "ns",
        "How much longer it took in the second recording.",
        head=fact("comparison/head_time_change_ns"),
    ),
    Column(
        "time_a_ns", "BIGINT", "ns", "Time in the first recording.", head=fact("comparison/head_time_a_ns")
    ),
    Column("time_b_ns", "BIGINT", "ns", "Time in the second.", head=fact("comparison/head_time_b_ns")),
    Column("calls_a", "BIGINT", None, "Calls in the first recording.", head=fact("comparison/head_calls_a")),
    Column("calls_b", "BIGINT", None, "Calls in the second.", head=fact("comparison/head_calls_b")),
    Column(
        "bytes_a",
        "BIGINT",
        "B",
        "Bytes transferred in the first recording.",
        head=fact("comparison/head_bytes_a"),
    ),
    Column(
        "bytes_b", "BIGINT", "B", "Bytes transferred in the second.", head=fact("comparison/head_bytes_b")
    ),
)


def change_row(change: Change) -> tuple[Any, ...]:
    """The change as a row of `CHANGE_COLUMNS`."""
    return (
        change.name,
        change.time_ns,
        change.time_a_ns,
        change.time_b_ns,
        change.calls_a,
        change.calls_b,
        change.bytes_a,
        change.bytes_b,
    )


FINDING_COLUMNS = (
    Column("change", "VARCHAR", None, "gone, new or both.", head=fact("comparison/head_change")),
    Column("rule", "VARCHAR", None, "Id of the rule."),
    Column("title", "VARCHAR", None, "Title of the rule.", head=fact("comparison/head_title")),
    Column("subject", "VARCHAR", None, "What it is about.", head=fact("comparison/head_subject")),
    Column(
        "gain_a_ns",
        "BIGINT",
        "ns",
        "What could be saved in the first recording.",
        head=fact("comparison/head_gain_a_ns"),
    ),
    Column(
        "gain_b_ns",
        "BIGINT",
        "ns",
        "What could be saved in the second.",
        head=fact("comparison/head_gain_b_ns"),
    ),
    Column("reason", "VARCHAR", None, "One sentence, of the second recording where it is there."),
)


def finding_row(change: FindingChange, lang: str) -> tuple[Any, ...]:
    """The change as a row of `FINDING_COLUMNS`."""
    finding = change.finding.in_language(lang)
    gains = (change.a and change.a.gain_ns, change.b and change.b.gain_ns)
    return (change.state, finding.rule, finding.title, finding.subject, *gains, finding.reason)


TOTAL_COLUMNS = (
    Column("what", "VARCHAR", None, "What was counted."),
    Column("a", "BIGINT", None, "In the first recording."),
    Column("b", "BIGINT", None, "In the second."),
    Column("times", "DOUBLE", None, "The second over the first."),
)


def total_rows(comparison: Comparison) -> list[tuple[Any, ...]]:
    """The totals as rows of `TOTAL_COLUMNS`."""
    values = {name: (of_a.value, of_b.value) for name, (of_a, of_b) in comparison.totals.items()}
    return [(name, a, b, round(b / a, 3) if a and b is not None else None) for name, (a, b) in values.items()]
