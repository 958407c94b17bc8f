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


LOG = Path(__file__).parents[3] / "testdata" / "critical_paths" / "run.strace"


def check_path(
    query: Query, recording: Path, said: str, name: str, leaving: Callable[[int, int], dict[int, int]]
) -> None:
    """Compares who worked on the path, and for how long, with what the program says of itself.

    leaving: how long each thread was on its way into its sleeps between two times, if that does not count as sleep.
    """
    lines = [line.split() for line in said.splitlines()]
    [(from_ns, until_ns)] = [
        (int(line[2]), int(line[3])) for line in lines if line[:2] == ["structure", name]
    ]
    expected = {int(line[2]): (int(line[3]), int(line[4])) for line in lines if line[:2] == ["part", name]}
    worked = dict(
        query(
            recording,
            f"SELECT p.tid, sum(least(c.ts_ns + c.dur_ns, {until_ns}) - greatest(c.ts_ns, {from_ns}))::BIGINT "
            "FROM critical_path AS c JOIN processes AS p USING (task_id) WHERE c.cause = 'timer' "
            f"AND c.ts_ns < {until_ns} AND c.ts_ns + c.dur_ns > {from_ns} GROUP BY p.tid",
        )
    )
    left_ns = leaving(from_ns, until_ns)
    # Work is sleep: it takes what it should, and no longer than the program itself says.
    assert worked.keys() == expected.keys()
    wrong = {
        tid: (ns, late_ns, worked[tid], left_ns.get(tid))
        for tid, (ns, late_ns) in expected.items()
        if not ns - left_ns.get(tid, 0) <= worked[tid] <= ns + late_ns
    }
    assert wrong == {}


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_path_is_with_those_on_whom_the_end_depends(
    scene: Callable[[str], Path], query: Query, name: str
) -> None:
    folder = scene("critical_paths")

    def leaving(from_ns: int, until_ns: int) -> dict[int, int]:
        """A sleep counts from when the timer is set, which is before the thread leaves its CPU; anything may come between them."""
        return dict(
            query(
                folder / "rec",
                "SELECT p.tid, sum(coalesce(r.ts_ns, c.ts_ns + c.dur_ns) - c.ts_ns)::BIGINT "
                "FROM calls AS c JOIN processes AS p USING (task_id) LEFT JOIN run_states AS r "
                "ON r.task_id = c.task_id AND r.cause = 'timer' AND r.ts_ns BETWEEN c.ts_ns AND c.ts_ns + c.dur_ns "
                f"WHERE c.call = 'clock_nanosleep' AND c.ts_ns BETWEEN {from_ns} AND {until_ns} GROUP BY p.tid",
            )
        )

    check_path(query, folder / "rec", (folder / "said").read_text(), name, leaving)


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_log_of_strace_has_the_same_path(import_log: Callable[..., Path], query: Query, name: str) -> None:
    # There, the whole call is the sleep.
    check_path(query, import_log(LOG), LOG.with_name("said").read_text(), name, lambda *_: {})


def test_the_path_of_a_log_has_no_gap(import_log: Callable[..., Path], query: Query) -> None:
    [(gaps, path_ns, life_ns)] = query(
        import_log(LOG),
        """SELECT count(*) FILTER (WHERE ts_ns <> before), sum(dur_ns)::BIGINT,
            (SELECT end_ts_ns - start_ts_ns FROM processes WHERE task_id = 0)
        FROM (SELECT *, lag(ts_ns + dur_ns, 1, ts_ns) OVER (ORDER BY ts_ns) AS before FROM critical_path)""",
    )
    assert gaps == 0
    assert path_ns == life_ns


COMMAND = '1 1700000001.000000 execve("/bin/a", ["a"], 0x7ff /* 1 var */) = 0 <0.000100>\n'
SLEEP = "1 1700000001.100000 nanosleep({tv_sec=1, tv_nsec=0}, NULL) = 0 <1.000000>\n"
END = "1 1700000002.200000 +++ exited with 0 +++\n"


@pytest.mark.parametrize(
    ("log", "rows"),
    [
        (COMMAND + SLEEP + END, 3),
        # Attached to: its own time is the path.
        (SLEEP + END, 2),
        # Several were attached to: none of them depends on the end of another.
        (SLEEP + SLEEP.replace("1 ", "2 ", 1) + END, None),
        # Without durations, nothing tells how long a call waited.
        (COMMAND.replace(" <0.000100>", "") + SLEEP.replace(" <1.000000>", "") + END, None),
    ],
)
def test_a_log_has_the_path_of_the_thread_from_which_all_others_descend(
    import_log: Callable[..., Path], query: Query, log: str, rows: int | None
) -> None:
    folder = import_log(log)
    assert (folder / "critical_path").exists() == (rows is not None)
    if rows:
        assert query(folder, "SELECT count(*)::BIGINT FROM critical_path") == [(rows,)]


def test_the_end_of_a_pipe_is_that_of_its_writer(import_log: Callable[..., Path], query: Query) -> None:
    folder = import_log(
        COMMAND
        + "1 1700000001.100000 clone(child_stack=NULL, flags=SIGCHLD) = 2 <0.000050>\n"
        + "2 1700000001.101000 nanosleep({tv_sec=1, tv_nsec=0}, NULL) = 0 <1.000000>\n"
        + "2 1700000002.101500 exit_group(0) = ?\n"
        + "2 1700000002.101700 +++ exited with 0 +++\n"
        + '1 1700000001.102000 read(3<pipe:[7]>, "", 4096) = 0 <0.999600>\n'
        + END.replace("1 1700000002", "1 1700000003")
    )
    waits = "SELECT tid::INTEGER, cause, dur_ns FROM critical_path JOIN processes USING (task_id) WHERE part = 'waiting'"
    assert query(folder, waits) == [(2, "timer", 1_000_000_000)]
