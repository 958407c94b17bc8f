"""The critical path of programs whose structure is known: who works on it, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Query = Callable[[Path, str], list[tuple]]

STRUCTURES = [
    "fork_join",
    "pipeline",
    "lock_convoy",
    "producer_and_consumer",
    "barrier",
    "client_and_server",
    "parallel_make",
    "thread_pool",
]


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_path_is_with_those_on_whom_the_end_depends(
    scene: Callable[[str], Path], query: Query, name: str
) -> None:
    folder = scene("critical_paths")
    lines = [line.split() for line in (folder / "said").read_text().splitlines()]
    expected = {int(tid): int(ns) for word, of, tid, ns in lines if (word, of) == ("part", name)}
    [(from_ns, until_ns)] = [
        (int(start), int(end)) for word, of, start, end in lines if (word, of) == ("structure", name)
    ]
    worked = dict(
        query(
            folder / "rec",
            f"SELECT p.tid, sum(least(c.ts_ns + c.dur_ns, {until_ns}) - greatest(c.ts_ns, {from_ns}))::BIGINT "
            "FROM critical_path AS c JOIN processes AS p USING (task_id) WHERE c.cause = 'timer' "
            f"AND c.ts_ns < {until_ns} AND c.ts_ns + c.dur_ns > {from_ns} GROUP BY p.tid",
        )
    )
    # Work is sleep: it takes what it should, and a little longer.
    assert worked.keys() == expected.keys()
    assert all(ns <= worked[tid] for tid, ns in expected.items())
    assert sum(worked.values()) <= 1.05 * sum(expected.values()) + 2_000_000
