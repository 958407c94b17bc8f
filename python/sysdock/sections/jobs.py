"""Activity of the jobs of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sysdock.errors import NotComputed
from sysdock.sections.section import Capture, InfoLine, ScreenTable, Section
from sysdock.sentences import fact
from sysdock.text import human_bytes, human_count, human_ns

if TYPE_CHECKING:
    from sysdock.analysis import Session

_MOST_ROWS = 8
# By the sums by hour, which are there also when samples are gone.
_WHERE = "WHERE job_id IS NOT NULL AND counter_group IN ('files', 'tasks')"
_BY_JOB = f"""
    SELECT job_id, coalesce(sum(bytes), 0) AS bytes, coalesce(sum(operations), 0) AS operations,
        coalesce(sum(metadata_operations), 0) AS metadata, coalesce(sum(io_wait_ns), 0) AS wait_ns
    FROM job_hours {_WHERE} GROUP BY job_id ORDER BY wait_ns DESC, job_id LIMIT {_MOST_ROWS}
"""
_BY_FILE_SYSTEM = f"""
    SELECT concat(target, ' ', coalesce(file_system, '')) AS name,
        coalesce(sum(bytes), 0) AS bytes, coalesce(sum(operations), 0) AS operations,
        coalesce(sum(metadata_operations), 0) AS metadata, coalesce(sum(io_wait_ns), 0) AS wait_ns
    FROM job_hours {_WHERE} AND target IS NOT NULL AND target <> '(kernel)'
    GROUP BY target, file_system ORDER BY wait_ns DESC, name LIMIT {_MOST_ROWS}
"""
_COLUMNS = (
    fact("sections/transferred"),
    fact("sections/call_count"),
    fact("sections/metadata"),
    fact("sections/waited"),
)


def _coverage(session: Session, _capture: Capture) -> Sequence[InfoLine]:
    held = set(session.views.available)
    facts = []
    if "job_hours" in held:
        sql = "SELECT count(DISTINCT job_id), count(DISTINCT hour_ns) FROM job_hours"
        [(jobs, hours)] = session.fetch(sql)
        facts.append(InfoLine(fact("sections/jobs"), fact("sections/jobs_in_hours", jobs=jobs, hours=hours)))
        clusters = session.fetch("SELECT DISTINCT cluster FROM job_hours ORDER BY cluster")
        names = ", ".join(str(name) for (name,) in clusters)
        facts.append(InfoLine(fact("sections/cluster"), names))
    if "agent_batches" in held:
        sql = """SELECT count(DISTINCT concat(b.node, ' ', b.agent)), count(DISTINCT b.node),
            coalesce(max(b.lost), 0) FROM agent_batches AS b"""
        [(agents, nodes, lost)] = session.fetch(sql)
        words = fact("sections/agents_nodes", agents=agents, nodes=nodes)
        facts.append(InfoLine(fact("sections/counted"), words))
        if lost:
            facts.append(InfoLine(fact("sections/lost_samples"), fact("sections/lost_on_a_node", lost=lost)))
    return facts


def _screen(session: Session) -> Sequence[ScreenTable]:
    tables = []
    for title, sql in (
        (fact("sections/file_systems"), _BY_FILE_SYSTEM),
        (fact("sections/jobs_waited_longest_files"), _BY_JOB),
    ):
        try:
            found = session.fetch(sql)
        except NotComputed as error:
            tables.append(ScreenTable(title, _COLUMNS, [], error.words))
            continue
        rows = [(str(name), _numbers(numbers)) for name, *numbers in found]
        tables += [ScreenTable(title, _COLUMNS, rows)] if rows else []
    return tables


def _numbers(numbers: Sequence[int]) -> tuple[str, str, str, str]:
    moved, operations, metadata, wait_ns = (int(number) for number in numbers)
    return human_bytes(moved), human_count(operations), human_count(metadata), human_ns(wait_ns)


SECTION = Section(
    about="jobs",
    order=90,
    question="jobs/top",
    needs=("job_hours",),
    title=fact("sections/jobs_cluster"),
    coverage=_coverage,
    screen=_screen,
)
