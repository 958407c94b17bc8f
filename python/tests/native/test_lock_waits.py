"""Waits for locks of the kernel, against a program that holds one for a known time, and programs that are known to fight for one."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from scenes import HOLD_MS, STORMS, WAITERS
from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Recording

Query = Callable[[Path, str], list[tuple]]

HOLD_NS = HOLD_MS * 1_000_000
# What the lock that each kind of holder has is called; an inode is a part of what the file system makes of it.
HELD = {"pipe": ("mutex", r"pipe_inode_info\.mutex"), "file": ("rwsem", r"(\w+\.vfs_)?inode\.i_rwsem")}


@dataclass(frozen=True)
class Said:
    """What the program said of a thread: when it began and ended to hold or to write [ns]."""

    tid: int
    from_ns: int
    until_ns: int


def _said(folder: Path, word: str) -> list[Said]:
    lines = [line.split() for line in (folder / "said").read_text().splitlines()]
    return [Said(*map(int, words[1:])) for words in lines if words[0] == word]


@pytest.mark.parametrize("kind", HELD)
def test_each_waiter_waits_as_long_as_the_lock_is_held(
    scene: Callable[[str], Path], query: Query, kind: str
) -> None:
    folder = scene(f"held_{kind}")
    [holder] = _said(folder, "holder")
    waiters = {waiter.tid: waiter for waiter in _said(folder, "waiter")}
    rows = query(
        folder / "rec",
        "SELECT p.tid, w.dur_ns, w.given_up, h.tid, w.ts_ns, w.mode FROM lock_waits AS w "
        "JOIN processes AS p ON p.task_id = w.task_id "
        "LEFT JOIN processes AS h ON h.task_id = w.holder_task_id "
        f"WHERE w.dur_ns > {HOLD_NS // 2} AND NOT w.nested",
    )
    assert len(rows) == WAITERS
    assert {tid for tid, *_ in rows} == set(waiters)
    off = []
    for tid, dur_ns, given_up, holder_tid, ts_ns, mode in rows:
        waiter = waiters[tid]
        assert (given_up, holder_tid, mode) == (False, holder.tid, None if kind == "pipe" else "write")
        # It began when the lock was held and ended when it no longer was; the program's clock was read outside of both.
        assert waiter.from_ns <= ts_ns < holder.until_ns < ts_ns + dur_ns <= waiter.until_ns
        off.append((waiter.until_ns - waiter.from_ns) / dur_ns - 1)
    # A thread that loses its CPU before or after the wait makes one differ, not all.
    assert statistics.median(off) < 0.01


@pytest.mark.parametrize("kind", HELD)
def test_the_lock_has_its_name(scene: Callable[[str], Path], query: Query, kind: str) -> None:
    names = query(
        scene(f"held_{kind}") / "rec",
        "SELECT DISTINCT l.kind, l.name FROM lock_waits AS w JOIN locks AS l USING (lock_id) "
        f"WHERE w.dur_ns > {HOLD_NS // 2}",
    )
    [(found, name)] = names
    assert found == HELD[kind][0]
    assert re.fullmatch(HELD[kind][1], name)


@pytest.mark.parametrize("kind", HELD)
def test_who_sleeps_for_a_lock_is_on_no_cpu(scene: Callable[[str], Path], query: Query, kind: str) -> None:
    """The scheduler's own events, of the same wait: the longest absence lies within it."""
    rows = query(
        scene(f"held_{kind}") / "rec",
        "SELECT w.ts_ns, w.ts_ns + w.dur_ns, r.ts_ns, r.ts_ns + r.dur_ns FROM lock_waits AS w "
        "JOIN run_states AS r ON r.task_id = w.task_id "
        f"WHERE w.dur_ns > {HOLD_NS // 2} AND r.wait_ns > {HOLD_NS // 2}",
    )
    assert len(rows) == WAITERS
    for wait_from, wait_until, away_from, away_until in rows:
        assert wait_from <= away_from <= away_until <= wait_until


# The lock that each storm is fought for, and functions of the kernel of which one asks for it.
FOUGHT = {
    "mappings": (r"mm_struct\.mmap_lock", "vm_mmap_pgoff|munmap|exc_page_fault|do_user_addr_fault"),
    "renames": (r"super_block\.s_vfs_rename_mutex", "rename"),
}


@pytest.mark.parametrize("name", FOUGHT)
def test_a_storm_is_fought_for_its_lock(scene: Callable[[str], Path], query: Query, name: str) -> None:
    lock, functions = FOUGHT[name]
    rec = scene(f"storm_{name}") / "rec"
    rows = query(
        rec,
        "SELECT l.name, sum(w.dur_ns)::BIGINT AS ns FROM lock_waits AS w JOIN locks AS l USING (lock_id) "
        "WHERE NOT w.nested GROUP BY l.name ORDER BY ns DESC",
    )
    assert re.fullmatch(lock, rows[0][0]), rows[:5]
    [(known, all_waits)] = query(
        rec,
        "SELECT count(*) FILTER (WHERE s.stack_id IS NOT NULL), count(*) FROM lock_waits AS w "
        "JOIN locks AS l USING (lock_id) LEFT JOIN (SELECT DISTINCT stack_id FROM stacks WHERE "
        f"regexp_matches(function, '{functions}')) AS s ON s.stack_id = w.kernel_stack_id "
        f"WHERE regexp_matches(l.name, '{lock}$')",
    )
    assert known > 0.95 * all_waits > 0


@pytest.mark.parametrize("name", STORMS)
def test_nearly_all_waits_are_for_locks_with_a_name(
    scene: Callable[[str], Path], query: Query, name: str
) -> None:
    """Waits, not their time: on a busy machine one wait can take longer than all others."""
    rows = query(
        scene(f"storm_{name}") / "rec",
        "SELECT coalesce(l.named_by, concat('none: ', l.name)) AS source, count(*) AS waits FROM lock_waits AS w "
        "JOIN locks AS l USING (lock_id) WHERE NOT w.nested GROUP BY source ORDER BY waits DESC",
    )
    unnamed = sum(waits for source, waits in rows if source.startswith("none"))
    assert unnamed <= 0.05 * sum(waits for _, waits in rows), rows


def test_names_by_functions_are_those_of_the_kernel(scene: Callable[[str], Path], query: Query) -> None:
    """Where a kernel names its variables, they are what the functions alone would have said; else no name is from there."""
    rows = [
        row
        for storm in STORMS
        for row in query(
            scene(f"storm_{storm}") / "rec",
            "SELECT l.name, l.by_functions, sum(w.dur_ns)::BIGINT FROM lock_waits AS w "
            "JOIN locks AS l USING (lock_id) WHERE l.named_by = 'symbol' GROUP BY ALL",
        )
    ]
    compared = [row for row in rows if row[1] is not None]
    wrong = sum(ns for name, by_functions, ns in compared if name != by_functions)
    assert wrong <= 0.01 * sum(ns for *_, ns in compared), rows
    assert bool(rows) == bool(compared), rows


def test_the_rule_finds_the_lock_that_a_storm_is_fought_for(scene: Callable[[str], Path]) -> None:
    rec = scene("storm_renames") / "rec"
    with Session(Recording.open(rec), Library(Path(__file__).parents[3] / "knowhow")) as session:
        [finding] = [found for found in session.diagnose() if found.rule == "locks/contention"]
        [most, *_] = session.run("locks/share_by_lock").dicts()
    assert (finding.status, finding.subject) == ("finding", "super_block.s_vfs_rename_mutex")
    assert most["lock"] == finding.subject
    assert most["held_by"].startswith("lock_storms ")


@pytest.mark.parametrize("kind", HELD)
def test_the_critical_path_goes_on_with_who_has_the_lock(
    scene: Callable[[str], Path], query: Query, kind: str
) -> None:
    """The holder waits for a thread that sleeps: that is what the end depended on, for the sake of the lock."""
    folder = scene(f"held_{kind}")
    waits = query(
        folder / "rec",
        "SELECT r.cause, l.name FROM run_states AS r LEFT JOIN locks AS l USING (lock_id) "
        f"WHERE r.wait_ns > {HOLD_NS // 2} AND r.call IN ('write', 'pwrite64') AND r.lock_id IS NOT NULL",
    )
    assert [cause for cause, _ in waits] == ["kernel lock"] * WAITERS
    assert all(re.fullmatch(HELD[kind][1], name) for _, name in waits)
    [(cause, name)] = query(
        folder / "rec",
        "SELECT c.cause, l.name FROM critical_path AS c LEFT JOIN locks AS l USING (lock_id) "
        f"WHERE c.dur_ns > {HOLD_NS // 2}",
    )
    assert cause == "timer"
    assert re.fullmatch(HELD[kind][1], name)
