"""Memory of the kernel, against what a program had it allocate, the calls that it made, and what a control group counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from recorders import kernel_of

Query = Callable[[Path, str], list[tuple]]


@dataclass(frozen=True)
class Run:
    """A recording of memory_use.py, and what that said."""

    rec: Path
    said: dict[str, int]
    query: Query

    def ask(self, sql: str) -> list[tuple]:
        return self.query(self.rec, sql)

    def number(self, where: str) -> int:
        """How often its own process did this."""
        [(number,)] = self.ask(
            "SELECT coalesce(sum(number), 0) FROM allocations INNER JOIN processes USING (task_id)"
            f" WHERE pid = {self.said['pid']} AND {where}"
        )
        return int(number)


def run_of(folder: Path, query: Query) -> Run:
    return Run(folder / "rec", json.loads((folder / "said.json").read_text()), query)


@pytest.fixture
def sites(scene: Callable[[str], Path], query: Query) -> Run:
    return run_of(scene("memory_sites"), query)


@pytest.fixture
def limit(scene: Callable[[str], Path], query: Query) -> Run:
    return run_of(scene("memory_limit"), query)


@pytest.mark.parametrize("name", ["memory_sites", "memory_limit"])
def test_nothing_is_lost(scene: Callable[[str], Path], manifest: Callable, name: str) -> None:
    stated = manifest(scene(name) / "rec")
    assert [stated["tables"][table]["lost"] for table in ("allocations", "memory_stalls")] == [0, 0]
    assert {"family": "memory", "missing": None} in stated["families"]


def test_each_object_is_counted(sites: Run) -> None:
    said = sites.said
    made = "NOT freed AND kind = 'cache' AND"
    assert sites.number(f"{made} cache = 'sock_inode_cache'") == said["sockets"]
    assert sites.number(f"{made} cache = 'task_struct'") == said["children"]
    # Every call that opens takes one, also where it fails; a socket has one, each start of a program some.
    [(opened,)] = sites.ask(
        "SELECT count(*) FILTER (call IN ('open', 'openat', 'socket')) + 2 * count(*) FILTER (call LIKE 'pipe%')"
        f" FROM calls INNER JOIN processes USING (task_id) WHERE pid = {said['pid']}"
    )
    assert opened >= said["files"] + said["sockets"]
    assert opened <= sites.number(f"{made} cache = 'filp'") <= opened + 40


def test_what_is_closed_is_given_back(sites: Run) -> None:
    freed = sites.number("freed AND kind = 'cache' AND cache = 'filp'")
    made = sites.number("NOT freed AND kind = 'cache' AND cache = 'filp'")
    # Some that others opened are closed here last. Before Linux 6.7 they are given back later, and count for the process that runs then.
    at_once = kernel_of(sites.rec, sites.query) >= (6, 7)
    assert (sites.said["files"] if at_once else 1) <= freed <= made + 10


def test_sites_and_bytes_are_those_of_the_kernel(sites: Run) -> None:
    [(function, kinds)] = sites.ask(
        "SELECT arg_max(function, number), count(DISTINCT size_bytes) FROM allocations"
        " WHERE cache = 'sock_inode_cache' AND NOT freed"
    )
    assert function in ("sock_alloc_inode", "alloc_inode")
    assert kinds == 1
    wrong = sites.ask(
        "SELECT * FROM allocations WHERE given_bytes <> number * size_bytes OR asked_bytes > given_bytes"
        " OR (kind = 'pages') <> (page_order IS NOT NULL) OR (page_order IS NOT NULL AND size_bytes <> 4096 << page_order)"
    )
    assert wrong == []


def test_each_page_that_is_touched_is_counted(sites: Run) -> None:
    # The compiler may have put one into the other; the stack has what is there.
    functions = ("do_anonymous_page", "alloc_anon_folio", "__handle_mm_fault")
    touched = sites.number(f"kind = 'pages' AND NOT freed AND page_order = 0 AND function IN {functions}")
    [(faults,)] = sites.ask(
        f"SELECT minor_faults + major_faults FROM processes WHERE pid = {sites.said['pid']} AND tid = pid"
    )
    assert sites.said["pages"] <= touched <= faults


def test_a_group_at_its_limit_waits_as_often_as_it_counts(limit: Run) -> None:
    said = limit.said
    [(stalls, pages, shortest, others)] = limit.ask(
        "SELECT count(*), sum(pages), min(dur_ns), count(*) FILTER (pid <> " + str(said["pid"]) + ")"
        " FROM memory_stalls LEFT JOIN processes USING (task_id) WHERE kind = 'group reclaim'"
    )
    # The counter goes up with every try, of which the kernel makes more than one where the first frees too little.
    assert 0 < stalls <= said["failures"]
    assert (others, shortest > 0) == (0, True)
    # What was read and is not in the group any more was freed, but for what other processes and the kernel's own threads freed.
    assert pages * 4096 <= said["bytes"]
    assert pages * 4096 >= (said["bytes"] - 32 * 1024 * 1024) / 2


def test_stalls_lie_in_the_calls_that_they_delay(limit: Run) -> None:
    [(stalls, inside)] = limit.ask(
        "SELECT count(*), count(c.ts_ns) FROM memory_stalls AS s LEFT JOIN calls AS c"
        " ON c.task_id = s.task_id AND s.ts_ns >= c.ts_ns AND s.ts_ns + s.dur_ns <= c.ts_ns + c.dur_ns AND c.call = s.call"
        " WHERE s.kind = 'group reclaim' AND s.call = 'read'"
    )
    assert stalls == inside > 0


def test_a_process_that_is_killed_for_memory_is_there(scene: Callable[[str], Path], query: Query) -> None:
    folder = scene("memory_kill")
    pid, status = map(int, (folder / "said").read_text().split())
    assert status == 128 + 9
    killed = query(
        folder / "rec",
        "SELECT pid, dur_ns, exit_signal FROM memory_stalls INNER JOIN processes USING (task_id) WHERE kind = 'oom kill'",
    )
    assert killed == [(pid, 0, "SIGKILL")]
    [(first, killed_ns)] = query(
        folder / "rec",
        "SELECT min(ts_ns + dur_ns) FILTER (kind = 'group reclaim'), max(ts_ns) FILTER (kind = 'oom kill')"
        " FROM memory_stalls",
    )
    assert first < killed_ns
