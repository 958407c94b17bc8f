"""Counts, errors, bytes and times of real logs, against an independent reader and against strace's own table."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from slow_reader import Total, read
from stated import stated

LOGS = Path(__file__).resolve().parents[3] / "testdata" / "strace"
Import = Callable[..., Path]
Query = Callable[[Path, str], list[tuple]]


def totals(query: Query, recording: Path) -> dict[str, Total]:
    """The same figures from a recording."""
    rows = query(
        recording,
        "SELECT call, count(*), count(errno), coalesce(sum(transferred_bytes), 0)::BIGINT, coalesce(sum(dur_ns), 0)::BIGINT"
        " FROM calls WHERE via IS NULL GROUP BY call",
    )
    return {call: Total(*figures) for call, *figures in rows}


@pytest.mark.parametrize("name", sorted(path.name for path in LOGS.iterdir()))
def test_totals_equal_those_of_a_slow_reader(
    name: str, import_log: Import, query: Query, manifest: Callable
) -> None:
    paths = sorted((LOGS / name).iterdir()) if (LOGS / name).is_dir() else [LOGS / name]
    expected = read(*paths)
    recording = import_log(*paths)
    assert len(expected.calls) > 10
    assert totals(query, recording) == expected.calls
    assert manifest(recording)["restarted_calls"] == expected.restarted


@pytest.mark.parametrize(
    ("lines", "calls", "restarted"),
    [
        # The kernel starts it again, behind the handler.
        (
            [
                "read(3, 0x7ffe, 9) = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <1.0>",
                "--- SIGALRM {si_signo=SIGALRM, si_code=SI_KERNEL} ---",
                "rt_sigreturn({mask=[]}) = 0 <0.1>",
                'read(3, "abc", 9) = 3 <2.0>',
            ],
            [("read", 3_000_000_000, 3, None), ("rt_sigreturn", 100_000_000, None, None)],
            1,
        ),
        # Twice, and a call of the handler between.
        (
            [
                "read(3, 0x7ffe, 9) = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <1.0>",
                'write(1, "x", 1) = 1 <0.1>',
                "rt_sigreturn({mask=[]}) = 0 <0.1>",
                "read(3, 0x7ffe, 9) = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <1.0>",
                "read(3, 0x7ffe, 9) = -1 EIO (Input/output error) <1.0>",
            ],
            [
                ("read", 3_000_000_000, None, "EIO"),
                ("rt_sigreturn", 100_000_000, None, None),
                ("write", 100_000_000, 1, None),
            ],
            2,
        ),
        (
            [
                "nanosleep({tv_sec=9, tv_nsec=0}, 0x1) = ? ERESTART_RESTARTBLOCK (Interrupted by signal) <1.0>",
                "--- SIGCONT {si_signo=SIGCONT, si_code=SI_USER, si_pid=1, si_uid=0} ---",
                "restart_syscall(<... resuming interrupted nanosleep ...>) = 0 <2.0>",
            ],
            [("nanosleep", 3_000_000_000, None, None)],
            1,
        ),
        # The program gets EINTR, and asks again by itself.
        (
            [
                "read(3, 0x7ffe, 9) = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <1.0>",
                "rt_sigreturn({mask=[]}) = -1 EINTR (Interrupted system call) <0.1>",
                'read(3, "abc", 9) = 3 <2.0>',
            ],
            [
                ("read", 1_000_000_000, None, "ERESTARTSYS"),
                ("read", 2_000_000_000, 3, None),
                ("rt_sigreturn", 100_000_000, None, "EINTR"),
            ],
            0,
        ),
        # Another file is another call.
        (
            [
                "read(3, 0x7ffe, 9) = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <1.0>",
                'read(4, "abc", 9) = 3 <2.0>',
            ],
            [("read", 1_000_000_000, None, "ERESTARTSYS"), ("read", 2_000_000_000, 3, None)],
            0,
        ),
    ],
    ids=["restarted", "twice", "restart_syscall", "EINTR", "another file"],
)
def test_an_interrupted_call_is_one_with_its_restarts(
    lines: list[str],
    calls: list[tuple],
    restarted: int,
    import_log: Import,
    query: Query,
    manifest: Callable,
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"7 1700000000.{n:06} {line}\n" for n, line in enumerate(lines)))
    recording = import_log(log)
    rows = query(recording, "SELECT call, dur_ns, transferred_bytes, errno FROM calls ORDER BY call, dur_ns")
    assert rows == calls
    assert manifest(recording)["restarted_calls"] == read(log).restarted == restarted
    assert totals(query, recording) == read(log).calls


def summary_table(log: Path) -> dict[str, tuple[int, int]]:
    """Calls and errors per call of the table that `strace -C` appends."""
    text = log.read_text(encoding="latin-1")
    rows = re.findall(
        r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(\d+)? +(\w+)$", text[text.index("% time") :], re.MULTILINE
    )
    return {call: (int(calls), int(errors or 0)) for calls, errors, call in rows if call != "total"}


def check_against_summary(query: Query, recording: Path, log: Path) -> None:
    """strace counts a call when it returns, so exits and calls that were killed are not in its table.

    It counts a call that was interrupted and started again once for each of its parts.
    """
    rows = query(
        recording,
        "SELECT call, count(*), count(errno) FROM calls WHERE via IS NULL"
        " AND coalesce(value, transferred_bytes) IS NOT NULL OR errno IS NOT NULL GROUP BY call",
    )
    counted = {call: (calls, errors) for call, calls, errors in rows}
    read_slowly = read(log)
    for call, parts in read_slowly.parts.items():
        joined = read_slowly.calls.get(call, Total())
        if parts != joined:
            calls, errors = counted.get(call, (0, 0))
            counted[call] = calls + parts.calls - joined.calls, errors + parts.errors - joined.errors
    expected = summary_table(log)
    assert len(expected) > 10
    assert counted == expected
    restarted = stated(recording)["restarted_calls"]
    assert restarted == read_slowly.restarted


def test_totals_equal_the_table_of_strace_c(import_log: Import, query: Query) -> None:
    log = LOGS / "odd_files.yy_C.strace"
    check_against_summary(query, import_log(log), log)


@pytest.mark.parametrize(
    "command",
    [
        ["ls", "-l", "/usr/bin"],
        ["sh", "-c", "for i in 1 2 3; do cat /etc/hostname | wc -c; done; ls /nonexistent; sleep 0.1 & wait"],
        [
            "python3",
            "-c",
            "import threading as t; [t.Thread(target=open, args=('/etc/passwd',)).start() for _ in range(20)]",
        ],
        ["tar", "cf", "/dev/null", "/etc"],
    ],
    ids=["ls", "shell", "threads", "tar"],
)
def test_totals_equal_the_table_of_strace_c_in_a_run_made_now(
    command: list[str], import_log: Import, query: Query, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    subprocess.run(
        ["strace", "-f", "-C", "-ttt", "-T", "-y", "-o", log, *command], capture_output=True, check=False
    )
    recording = import_log(log)
    check_against_summary(query, recording, log)
    assert totals(query, recording) == read(log).calls
