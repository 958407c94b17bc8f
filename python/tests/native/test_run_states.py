"""When threads run and what they wait for, against what the kernel counted for them and what the program knows of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Recording

Query = Callable[[Path, str], list[tuple]]


@dataclass(frozen=True)
class Counted:
    """What the kernel counted of a thread between two moments."""

    tid: int
    from_ns: int
    until_ns: int
    cpu_ns: int
    voluntary: int
    involuntary: int


class Run:
    """A recording of run_states.c, and what that said."""

    def __init__(self, folder: Path, query: Query) -> None:
        self.folder = folder / "rec"
        lines = [line.split() for line in (folder / "said").read_text().splitlines()]
        self.threads = {words[1]: Counted(*map(int, words[2:])) for words in lines if words[0] == "thread"}
        self.sleeps = {words[1]: (int(words[2]), int(words[3])) for words in lines if words[0] == "sleeps"}
        self._query = query
        self.task_of = {
            name: task
            for name, thread in self.threads.items()
            for (task,) in self.fetch(f"SELECT task_id FROM processes WHERE tid = {thread.tid}")
        }

    def fetch(self, sql: str) -> list[tuple]:
        """Rows of the stored tables."""
        return self._query(self.folder, sql)

    def away(self, name: str, what: str) -> tuple:
        """Sums over the rows of a thread that begin while it was counted."""
        thread = self.threads[name]
        [row] = self.fetch(
            f"SELECT {what} FROM run_states WHERE task_id = {self.task_of[name]} "
            f"AND ts_ns BETWEEN {thread.from_ns} AND {thread.until_ns}"
        )
        return row


@pytest.fixture
def run(scene: Callable[[str], Path], query: Query) -> Run:
    return Run(scene("run_states"), query)


THREADS = ["main", "partner", "child"]
# The waits that a recorder could miss take 50 ms each.
TAKEN_NS = 20_000_000


@pytest.mark.parametrize("name", THREADS)
def test_switches_are_those_that_the_kernel_counted(run: Run, name: str) -> None:
    counts = run.away(
        name, "count(*) FILTER (WHERE state <> 'preempted'), count(*) FILTER (WHERE state = 'preempted')"
    )
    assert counts == (run.threads[name].voluntary, run.threads[name].involuntary)


@pytest.mark.parametrize("name", THREADS)
def test_the_rest_is_cpu_time(run: Run, name: str) -> None:
    """What is neither waiting nor waiting for a CPU is what the kernel charged.

    Interrupts, and what a hypervisor takes of the CPU, it charges to nobody: they are no waits, but no CPU time either.
    """
    thread = run.threads[name]
    rows, away_ns = run.away(name, "count(*), sum(dur_ns)::BIGINT")
    ran_ns = thread.until_ns - thread.from_ns - away_ns
    # A switch takes some microseconds, of which both sides may have a part.
    slack_ns = 0.05 * thread.cpu_ns + rows * 20_000
    assert thread.cpu_ns - slack_ns <= ran_ns <= thread.cpu_ns + slack_ns + TAKEN_NS


@pytest.mark.parametrize("name", THREADS)
def test_sleeps_have_their_length(run: Run, name: str) -> None:
    number, ns = run.sleeps[name]
    rows = run.fetch(
        f"SELECT wait_ns, cause, state FROM run_states WHERE task_id = {run.task_of[name]} AND call LIKE '%nanosleep'"
        " AND state <> 'preempted'"
    )
    assert [row[1:] for row in rows] == [("timer", "sleeping")] * number
    # It has left its CPU after it asked for the time.
    assert all(wait_ns > 0.95 * ns for wait_ns, *_ in rows)


def test_waits_are_for_those_who_end_them(run: Run) -> None:
    def longest(name: str, cause: str) -> tuple[int, int]:
        [row] = run.fetch(
            "SELECT waker_task_id, wait_ns FROM run_states "
            f"WHERE task_id = {run.task_of[name]} AND cause = '{cause}' ORDER BY wait_ns DESC LIMIT 1"
        )
        return row

    waker, wait_ns = longest("main", "lock")
    assert waker == run.task_of["partner"]
    assert wait_ns > 45_000_000
    waker, wait_ns = longest("main", "child process")
    assert waker == run.task_of["child"]
    assert wait_ns > 75_000_000
    # On a busy machine one of them may find what it reads there each time.
    pair = (run.task_of["main"], run.task_of["partner"])
    wakers = run.fetch(
        f"SELECT DISTINCT task_id, waker_task_id FROM run_states WHERE task_id IN {pair} AND cause = 'pipe' AND waker_task_id IS NOT NULL"
    )
    assert wakers
    assert set(wakers) <= {pair, pair[::-1]}
    kinds = run.fetch("SELECT DISTINCT kind FROM run_states JOIN paths USING (path_id) WHERE cause = 'pipe'")
    assert kinds == [("pipe",)]


def test_a_mutex_says_who_has_it(run: Run) -> None:
    """Also while the wait is in progress and the mutex has not been released."""
    # A barrier, which has no holder, is waited for as well.
    rows = run.fetch(
        "SELECT holder_task_id, waker_task_id FROM run_states "
        f"WHERE task_id = {run.task_of['main']} AND cause = 'lock' AND holder_task_id IS NOT NULL"
    )
    assert rows == [(run.task_of["partner"], run.task_of["partner"])]
    others = run.fetch("SELECT DISTINCT cause FROM run_states WHERE holder_task_id IS NOT NULL")
    assert others == [("lock",)]


def test_the_critical_path_has_no_gap(run: Run) -> None:
    [(gaps, path_ns)] = run.fetch(
        """SELECT count(*) FILTER (WHERE ts_ns <> before), sum(dur_ns)::BIGINT
        FROM (SELECT *, lag(ts_ns + dur_ns, 1, ts_ns) OVER (ORDER BY ts_ns) AS before FROM critical_path)"""
    )
    [(life_ns,)] = run.fetch(
        f"SELECT end_ts_ns - start_ts_ns FROM processes WHERE task_id = {run.task_of['main']}"
    )
    assert (gaps, path_ns) == (0, life_ns)


def test_the_critical_path_is_what_others_did_meanwhile(run: Run) -> None:
    waits = dict(
        run.fetch("SELECT cause, sum(dur_ns)::BIGINT FROM critical_path WHERE cause IS NOT NULL GROUP BY 1")
    )
    slept_ns = sum(number * ns for number, ns in run.sleeps.values())
    assert waits["timer"] > 0.95 * slept_ns
    # Neither for the child nor for the lock: these are what the child and the partner did.
    assert "child process" not in waits
    assert waits.get("lock", 0) + waits.get("pipe", 0) < 0.05 * slept_ns
    computed = "SELECT sum(dur_ns) FROM critical_path WHERE part = 'running' AND task_id = "
    assert run.fetch(f"{computed}{run.task_of['main']}")[0][0] > 55_000_000
    assert run.fetch(f"{computed}{run.task_of['child']}")[0][0] > 38_000_000


def test_parts_add_up(run: Run) -> None:
    """For the command, and for each thread."""
    sql = "SELECT start_ts_ns, end_ts_ns FROM processes WHERE task_id = {}"
    with Session(Recording.open(run.folder), Library(Path(__file__).parents[3] / "knowhow")) as session:
        rows = session.run("time/where").rows()
    parts: dict[object, int] = {}
    for _, tid, _, _, time_ns, *_ in rows:
        parts[tid] = parts.get(tid, 0) + time_ns
        assert time_ns > 0
    for name, task in run.task_of.items():
        [(start, end)] = run.fetch(sql.format(task))
        assert parts[run.threads[name].tid] == end - start
    assert parts[None] == parts[run.threads["main"].tid]
    timers = {tid: time_ns for _, tid, part, _, time_ns, *_ in rows if part == "waiting: timer"}
    assert timers[None] > 0.95 * sum(number * ns for number, ns in run.sleeps.values())
