"""The cost of tracing, as far as the recording itself shows it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sysdock.analysis.finding import Finding
from sysdock.errors import NotComputed
from sysdock.sentences import Words, fact
from sysdock.text import human_count, human_ns

if TYPE_CHECKING:
    from sysdock.analysis.session import Session

# Calls that take well below a microsecond by themselves: what they take more is the tracer's.
_TRIVIAL = [
    *("brk", "getegid", "geteuid", "getgid", "getpid", "getppid", "gettid", "getuid", "lseek", "umask"),
    *("rt_sigaction", "rt_sigprocmask", "set_robust_list", "set_tid_address"),
]
# The mean, because costs are sums, but limited: a few calls that waited for a CPU must not dominate it.
_SQL = """SELECT CAST(least(avg(t.dur_ns), 2 * median(t.dur_ns)) AS BIGINT),
    (SELECT count(*) FROM calls WHERE dur_ns > 0 AND via IS NULL)
FROM calls AS t
WHERE t.dur_ns > 0 AND t.via IS NULL AND list_contains($trivial, t.call)"""


@dataclass(frozen=True)
class TracerCost:
    """Cost of tracing per call [ns], and number of calls."""

    each_ns: int
    calls: int

    @property
    def words(self) -> Words:
        """The cost as a sentence."""
        each, together = human_ns(self.each_ns), human_ns(self.each_ns * self.calls)
        calls = human_count(self.calls)
        return fact("diagnosis/times_include_tracing_overhead", each=each, together=together, calls=calls)


def tracer_cost(session: Session) -> TracerCost | None:
    """The cost of the tracer, measured by trivial calls; None if durations do not include or show it."""
    if not session.recording.clock.get("includes_tracer") or "calls" not in session.views.available:
        return None
    try:
        [(each_ns, calls)] = session.fetch(_SQL, {"trivial": _TRIVIAL})
    except NotComputed as error:
        session.notes.append(fact("diagnosis/tracing_overhead", why=error.words))
        return None
    return TracerCost(each_ns, calls) if each_ns else None


def untraced(session: Session, findings: Sequence[Finding]) -> list[Finding]:
    """The findings with gains of the untraced program: the tracer's part of a cost cannot be saved."""
    if not any(one.cost_calls and one.gain_ns for one in findings):
        return list(findings)
    tracer = tracer_cost(session)
    return [_untraced(one, tracer.each_ns) for one in findings] if tracer else list(findings)


def _untraced(finding: Finding, each_ns: int) -> Finding:
    if not (finding.gain_ns and finding.cost_ns and finding.cost_calls):
        return finding
    own = max(0.0, 1 - each_ns * finding.cost_calls / finding.cost_ns)
    return dataclasses.replace(finding, gain_ns=round(finding.gain_ns * own))
