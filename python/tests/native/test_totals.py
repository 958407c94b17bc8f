"""Counts, errors, bytes and times of real logs, against an independent reader and against strace's own table."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from slow_reader import Total, read

LOGS = Path(__file__).resolve().parents[3] / "testdata" / "strace"
Import = Callable[..., Path]
Query = Callable[[Path, str], list[tuple]]


def totals(query: Query, recording: Path) -> dict[str, Total]:
    """The same figures from a recording."""
    rows = query(
        recording,
        "SELECT call, count(*), count(errno), coalesce(sum(moved_bytes), 0)::BIGINT, coalesce(sum(dur_ns), 0)::BIGINT"
        " FROM calls GROUP BY call",
    )
    return {call: Total(*figures) for call, *figures in rows}


@pytest.mark.parametrize("name", sorted(path.name for path in LOGS.iterdir()))
def test_totals_equal_those_of_a_slow_reader(name: str, import_log: Import, query: Query) -> None:
    paths = sorted((LOGS / name).iterdir()) if (LOGS / name).is_dir() else [LOGS / name]
    expected = read(*paths)
    assert len(expected) > 10
    assert totals(query, import_log(*paths)) == expected


def summary_table(log: Path) -> dict[str, tuple[int, int]]:
    """Calls and errors per call of the table that `strace -C` appends."""
    text = log.read_text(encoding="latin-1")
    rows = re.findall(
        r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(\d+)? +(\w+)$", text[text.index("% time") :], re.MULTILINE
    )
    return {call: (int(calls), int(errors or 0)) for calls, errors, call in rows if call != "total"}


def check_against_summary(query: Query, recording: Path, log: Path) -> None:
    """strace counts a call when it returns, so exits and calls that were killed are not in its table."""
    rows = query(
        recording,
        "SELECT call, count(*), count(errno) FROM calls WHERE result IS NOT NULL OR errno IS NOT NULL GROUP BY call",
    )
    expected = summary_table(log)
    assert len(expected) > 10
    assert {call: (calls, errors) for call, calls, errors in rows} == expected


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
    assert totals(query, recording) == read(log)
