"""Whose calls a finding is about, and which part of the time they take."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sysdock.analysis.finding import Finding
from sysdock.errors import NotComputed
from sysdock.sentences import fact

if TYPE_CHECKING:
    from sysdock.analysis.session import Session

# A process that made a smaller part of the calls does not represent a finding: the number of processes is
# given.
LEAST_SHARE = 0.9
# Tables about these have no times of what ran, or times of something else than the recording.
_NOT_TIMED = {"scan", "job", "experiment", "load"}

# Callers of the calls on the places that findings name, with their number of threads. A place is a path,
# everything below it, or all calls of a name.
_CALLERS_SQL = """WITH asked AS (
    SELECT unnest(CAST($numbers AS BIGINT[])) AS number, unnest(CAST($files AS VARCHAR[])) AS file,
        unnest(CAST($below AS VARCHAR[])) AS below, unnest(CAST($names AS VARCHAR[])) AS name
), places AS (
    SELECT a.number, a.name, p.path_id FROM asked AS a JOIN paths AS p ON p.path = a.file
    UNION
    SELECT a.number, a.name, p.path_id FROM asked AS a JOIN paths AS p ON starts_with(p.path, a.below)
), made AS (
    SELECT l.number, c.process_id, c.task_id, count(*) AS calls
    FROM calls AS c JOIN places AS l ON l.path_id = c.path_id
    WHERE l.name IS NULL OR l.name = c.call
    GROUP BY l.number, c.process_id, c.task_id
    UNION ALL
    SELECT a.number, c.process_id, c.task_id, count(*) AS calls
    FROM calls AS c JOIN asked AS a ON a.name = c.call
    WHERE a.file IS NULL AND a.below IS NULL
    GROUP BY a.number, c.process_id, c.task_id
), by_process AS (
    SELECT m.number, m.process_id, sum(m.calls) AS calls, count(*) AS threads
    FROM made AS m GROUP BY m.number, m.process_id
), programs AS (
    SELECT b.number, b.process_id, p.pid, p.comm, b.calls, b.threads,
        sum(b.calls) OVER (PARTITION BY b.number) AS all_calls,
        count(*) OVER (PARTITION BY b.number) AS processes,
        row_number() OVER (PARTITION BY b.number ORDER BY b.calls DESC, b.process_id) AS place,
        row_number() OVER (PARTITION BY b.number, p.comm ORDER BY b.calls DESC, b.process_id) AS of_program
    FROM by_process AS b JOIN processes AS p ON p.task_id = b.process_id
)
SELECT g.number, g.pid, g.comm, CAST(g.calls AS BIGINT), CAST(g.all_calls AS BIGINT), g.processes, g.threads
FROM programs AS g WHERE g.of_program = 1 ORDER BY g.number, g.place"""

# A process is known by its first thread. Where an id was used again, the program with most threads has it.
_TASKS_SQL = """WITH by_process AS (
    SELECT process_id, count(*) AS threads,
        sum(greatest(0, coalesce(end_ts_ns, $end_ns) - start_ts_ns)) AS lived_ns
    FROM processes GROUP BY process_id
)
SELECT p.pid, p.comm, b.threads, CAST(b.lived_ns AS BIGINT)
FROM by_process AS b JOIN processes AS p ON p.task_id = b.process_id ORDER BY b.threads, p.task_id"""


@dataclass(frozen=True)
class _Callers:
    """The callers of a finding. `threads`: those of the process if it is one, otherwise more than one."""

    process: int | None
    programs: tuple[str, ...]
    processes: int
    threads: int


@dataclass(frozen=True)
class _Tasks:
    """Threads of a recording: program and number of threads by process id, and how long all lived (ns)."""

    known: dict[int, tuple[str, int]]
    processes: int
    threads: int
    lived_ns: int

    @property
    def names(self) -> set[str]:
        """Programs that ran."""
        return {program for program, _ in self.known.values()}


def with_callers(session: Session, findings: Sequence[Finding]) -> list[Finding]:
    """The findings with process, programs and share of the time, as far as the recording shows."""
    try:
        tasks = _tasks(session)
        callers = _callers(session, findings) if tasks.processes > 1 else {}
    except NotComputed as error:
        session.notes.append(fact("diagnosis/processes_findings", why=error.words))
        return list(findings)
    completed = []
    for number, finding in enumerate(findings):
        if finding.status != "finding":
            completed.append(finding)
            continue
        by = _known(finding, tasks) or callers.get(number)
        if by:
            finding = dataclasses.replace(
                finding, process=by.process, programs=by.programs, processes=by.processes
            )
        completed.append(_with_share(session, finding, tasks, by.threads if by else tasks.threads))
    return completed


def _tasks(session: Session) -> _Tasks:
    if "processes" not in session.views.available:
        return _Tasks({}, 0, 0, 0)
    manifest = session.recording.manifest
    end_ns = manifest["started_ns"] + manifest["duration_ns"]
    rows = session.fetch(_TASKS_SQL, {"end_ns": end_ns})
    return _Tasks(
        known={pid: (comm, threads) for pid, comm, threads, _ in rows if pid and comm},
        processes=len(rows),
        threads=sum(threads for _, _, threads, _ in rows),
        lived_ns=sum(lived for *_, lived in rows),
    )


def _known(finding: Finding, tasks: _Tasks) -> _Callers | None:
    """The caller that the rule states: the process, or the program with which its subject begins."""
    if finding.process is not None:
        program, threads = tasks.known.get(finding.process, (None, tasks.threads))
        return _Callers(finding.process, (program,) if program else (), 1, threads)
    if tasks.processes == 1:
        return _Callers(None, tuple(tasks.names), 1, tasks.threads)
    first = finding.subject.partition(" ")[0]
    if not finding.file and first in tasks.names:
        return _Callers(None, (first,), 0, tasks.threads)
    return None


def _callers(session: Session, findings: Sequence[Finding]) -> dict[int, _Callers]:
    """By the index of the finding: who made the calls that its file, directory or evidence names."""
    asked = [(number, *place) for number, finding in enumerate(findings) if (place := _place(finding))]
    if not asked or not {"calls", "paths"} <= set(session.views.available):
        return {}
    numbers, files, below, names = map(list, zip(*asked, strict=True))
    rows = session.fetch(_CALLERS_SQL, {"numbers": numbers, "files": files, "below": below, "names": names})
    found: dict[int, list[tuple[int, str | None, int, int, int, int]]] = {}
    for number, *row in rows:
        found.setdefault(number, []).append(tuple(row))
    return {number: _of_rows(each) for number, each in found.items()}


def _of_rows(rows: list[tuple[int, str | None, int, int, int, int]]) -> _Callers:
    """Rows of a finding, one for each program, the process with most calls first."""
    pid, comm, calls, all_calls, processes, threads = rows[0]
    programs = tuple(comm for _, comm, *_ in rows if comm)
    if processes > 1 and calls < LEAST_SHARE * all_calls:
        return _Callers(None, programs, processes, 2)
    # Other processes are left out of the name, but they may have run at the same time.
    return _Callers(pid or None, (comm,) if comm else (), 1, threads if processes == 1 else 2)


def _place(finding: Finding) -> tuple[str | None, str | None, str | None] | None:
    """Path, what its paths begin with, and call; None where the finding is about neither."""
    if finding.status != "finding" or finding.process is not None:
        return None
    name = None
    words = shlex.split(finding.evidence or "")
    if "--call" in words[:-1] and "," not in words[words.index("--call") + 1]:
        name = words[words.index("--call") + 1]
    if finding.file:
        return finding.file, None, name
    if finding.subject.startswith("/"):
        return finding.subject, finding.subject.rstrip("/") + "/", name
    return (None, None, name) if name else None


def _with_share(session: Session, finding: Finding, tasks: _Tasks, threads: int) -> Finding:
    """Which part of the time it takes. What threads do side by side adds up to more than passes.

    One thread: exactly that part. Several: no more than that, as long as it is less than all time; else the
    part of the time that all threads lived. Nothing saves more of the elapsed time than that part of it.
    """
    recording, cost = session.recording, finding.cost_ns
    if cost is None or not (recording.has_clock and recording.has_durations and _is_timed(session, finding)):
        return finding
    if recording.clock.get("durations") == "system_cpu":
        return finding
    elapsed = recording.manifest["duration_ns"]
    if 0 < cost <= elapsed:
        of = "elapsed" if threads == 1 else "elapsed_at_most"
        share = dataclasses.replace(finding, share=round(cost / elapsed, 6), share_of=of)
        return _bounded(share, elapsed)
    if 0 < cost <= tasks.lived_ns:
        share = dataclasses.replace(finding, share=round(cost / tasks.lived_ns, 6), share_of="threads")
        return _bounded(share, elapsed * cost / tasks.lived_ns)
    return _bounded(finding, elapsed)


def _bounded(finding: Finding, most_ns: float) -> Finding:
    if finding.gain_ns is None or finding.gain_ns <= most_ns:
        return finding
    return dataclasses.replace(finding, gain_ns=round(most_ns))


def _is_timed(session: Session, finding: Finding) -> bool:
    """Whether the costs of its rule are times of this recording."""
    rule = session.library.rule(finding.rule)
    about = {session.library.table(name).about for name in session.library.sources(rule.needs)} - {None}
    return bool(about - _NOT_TIMED) and "job" not in about
