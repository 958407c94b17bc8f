"""Finds the source line of a finding: the line that made most of the calls on its file."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sysdock.analysis.finding import Finding
from sysdock.errors import NotComputed
from sysdock.sentences import fact
from sysdock.text import percent

if TYPE_CHECKING:
    from sysdock.analysis.session import Session

# Below this share of the calls, no single line represents a finding.
LEAST_SHARE = 0.25

_LINES_SQL = """WITH used AS (
    SELECT stack_id, count(*) AS number FROM calls
    WHERE stack_id IS NOT NULL AND path_id IN (SELECT path_id FROM paths WHERE path = $file)
        AND ts_ns >= $from_ns AND ts_ns <= $until_ns
    GROUP BY stack_id
), lines AS (
    SELECT p.source, p.function, sum(u.number) AS number
    FROM used AS u JOIN stack_places AS p ON p.stack_id = u.stack_id
    WHERE p.own
    GROUP BY p.source, p.function
)
SELECT source, function, CAST(number AS BIGINT), CAST(sum(number) OVER () AS BIGINT)
FROM lines ORDER BY number DESC, source, function LIMIT 1"""
_ALWAYS = 2**62


def with_source_lines(session: Session, findings: Sequence[Finding]) -> list[Finding]:
    """The findings, those about a file with the line that did most of its calls in their time."""
    # Samples have stacks, too; without any of calls there is nothing to ask for each finding.
    if "stacks" not in session.views.available or not session.recording.rows("stacks"):
        return list(findings)
    try:
        if not session.fetch("SELECT 1 FROM calls WHERE stack_id IS NOT NULL LIMIT 1"):
            return list(findings)
        return [
            dataclasses.replace(each, source=_line(session, each))
            if each.status == "finding" and each.file
            else each
            for each in findings
        ]
    except NotComputed as error:
        session.notes.append(fact("diagnosis/source_lines_findings", why=error.words))
        return list(findings)


def _line(session: Session, finding: Finding) -> str | None:
    start, span = session.recording.manifest["started_ns"], (finding.from_s, finding.until_s)
    from_ns, until_ns = (None if moment is None else start + round(moment * 1e9) for moment in span)
    values = {
        "file": finding.file,
        # Moments are rounded, calls begin before they end.
        "from_ns": -_ALWAYS if from_ns is None else from_ns - 1000,
        "until_ns": _ALWAYS if until_ns is None else until_ns + 1000,
    }
    for source, function, number, total in session.fetch(_LINES_SQL, values):
        where = f"{source} ({function})" if source and function else source or function
        if where and number >= LEAST_SHARE * total:
            return f"{where}, {percent(number, total)}"
    return None
