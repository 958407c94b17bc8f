"""What being traced costs, as far as the recording itself shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sysdock.errors import NotComputed
from sysdock.text import human_count, human_ns

if TYPE_CHECKING:
    from sysdock.analysis.session import Session

# Calls that take well below a microsecond by themselves: what they take more is the tracer's.
_TRIVIAL = [
    *("brk", "getegid", "geteuid", "getgid", "getpid", "getppid", "gettid", "getuid", "lseek", "umask"),
    *("rt_sigaction", "rt_sigprocmask", "set_robust_list", "set_tid_address"),
]
_SQL = """SELECT min(dur_ns) FILTER (WHERE list_contains($trivial, call)), count(dur_ns) FROM calls
WHERE dur_ns > 0 AND via IS NULL"""


@dataclass(frozen=True)
class TracerCost:
    """What a traced call takes at least beside its own work (ns), and how many calls there were."""

    each_ns: int
    calls: int

    @property
    def words(self) -> tuple[str, str]:
        """It in English and in Japanese."""
        each, together = human_ns(self.each_ns), human_ns(self.each_ns * self.calls)
        calls = human_count(self.calls)
        return (
            f"Times include the tracer's: at least {each} a call, {together} for all {calls} calls. "
            "Without it, costs and gains are smaller.",
            f"時間はトレーサーの負荷 (1 回あたり {each} 以上、{calls} 回で {together} 以上) を含みます。"
            "トレースしなければ、所要時間も短縮できる時間もこれより短くなります。",
        )


def tracer_cost(session: Session) -> TracerCost | None:
    """The least that the tracer costs; None where durations do not include it, or no call shows it."""
    if not session.recording.clock.get("includes_tracer") or "calls" not in session.views.available:
        return None
    try:
        [(shortest_ns, calls)] = session.fetch(_SQL, {"trivial": _TRIVIAL})
    except NotComputed as error:
        session.notes.append(f"the cost of the tracer {error.words[0]}")
        return None
    return TracerCost(shortest_ns, calls) if shortest_ns else None
