"""Logs of strangers: old versions of strace, other architectures, logs of standard error with all that stands in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from stated import stated

LOGS = Path(__file__).resolve().parents[3] / "testdata" / "strangers"
Import = Callable[..., Path]
Query = Callable[[Path, str], list[tuple]]


def issues(recording: Path, query: Query) -> list[tuple]:
    """Each line that was not understood: number, kind, beginning."""
    if not stated(recording)["issues"]:
        return []
    return query(
        recording, "SELECT line, issue, excerpt FROM import_issues WHERE NOT understood ORDER BY line"
    )


def test_the_return_from_a_handler_in_the_forms_of_arm_and_i386(import_log: Import, query: Query) -> None:
    log = (
        "sigreturn() (mask [])                = 0\n"
        "sigreturn({mask=[CHLD]})                = 5\n"
        "rt_sigreturn() (mask ~[RT_1]) = 7\n"
        "sigreturn()                             = ? (mask now [])\n"
    )
    recording = import_log(log)
    assert issues(recording, query) == []
    assert query(recording, "SELECT value FROM calls ORDER BY ts_ns") == [(0,), (5,), (7,), (None,)]


def test_a_call_that_failed_with_eintr_is_not_joined_with_the_next(import_log: Import, query: Query) -> None:
    log = (
        "read(0, 0xbe9a, 1024) = ? ERESTARTSYS (To be restarted)\n"
        "--- SIGALRM (Alarm clock) @ 0 (0) ---\n"
        "sigreturn() (mask [ALRM])               = -1 EINTR (Interrupted system call)\n"
        'read(0, "a", 1024) = 1\n'
    )
    recording = import_log(log)
    assert issues(recording, query) == []
    rows = query(recording, "SELECT call, errno, transferred_bytes FROM calls ORDER BY ts_ns")
    assert rows == [("read", "ERESTARTSYS", None), ("sigreturn", "EINTR", None), ("read", None, 1)]


def test_forms_of_old_versions(import_log: Import, query: Query, manifest: Callable) -> None:
    recording = import_log(LOGS / "old.f.strace")
    assert issues(recording, query) == []
    assert manifest(recording)["issues"] == {}
    rows = query(
        recording, "SELECT tid, call, value, errno FROM calls JOIN processes USING (task_id) ORDER BY ts_ns"
    )
    assert rows == [
        (100, "SYS_290", 0, None),
        (100, "open", None, "ENOENT"),
        (100, "ioctl", None, "ENOTTY"),
        (100, "read", None, "EAGAIN"),
        (100, "clone", 101, None),
        (100, "wait4", 101, None),
        (101, "SYS_290", 3, None),
        (101, "exit_group", None, None),
    ]
    assert query(recording, "SELECT signal FROM signals ORDER BY ts_ns") == [
        ("SIGCHLD",),
        ("SIGUSR1",),
        ("SIGINT",),
    ]


NOT_UNDERSTOOD = """\
getpid() = 1
> no frame, no call
 | this is prose
 * so is this
--- a ruler ---
+++ superseded by execve in pid x +++
<... read resumed> and no end
close(3) = 0 and more
I/strace  ( 1234): close(4) = 0
01-02 12:34:56.789  1234  1234 D strace: close(4) = 0
openat(AT_FDCWD, "/system/li
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
100.00    0.000000           0         2           close
prose behind the table
clone(strace: Process 12 attached
and no rest
clone(strace: Process 13 attached
getpid() = 1
"""


def test_no_line_is_passed_over_in_silence(import_log: Import, query: Query, manifest: Callable) -> None:
    recording = import_log(NOT_UNDERSTOOD)
    found = [(line, issue) for line, issue, _ in issues(recording, query)]
    unknown = {2, 3, 4, 5, 6, 9, 10, 15, 17}
    broken = {7, 8, 11, 16, 18}
    assert found == [
        (line, "unknown_line" if line in unknown else "broken_call") for line in sorted(unknown | broken)
    ]
    counts = manifest(recording)
    assert (counts["lines_total"], counts["lines_understood"]) == (19, 19 - len(found))


@pytest.mark.parametrize("name", ["own_output.f.strace", "own_output.tt_T.strace"])
def test_a_programs_own_output_within_the_lines_is_told_from_calls(
    name: str, import_log: Import, query: Query, manifest: Callable
) -> None:
    recording = import_log(LOGS / name)
    assert manifest(recording)["issues"] == {}
    assert manifest(recording)["lines_understood"] == manifest(recording)["lines_total"] > 1000
    rows = query(
        recording,
        "SELECT comm, call, count(*), sum(requested_bytes), sum(transferred_bytes) FROM calls"
        " JOIN commands USING (comm_id) WHERE class = 'write' AND fd = 1 GROUP BY comm, call ORDER BY ALL",
    )
    assert rows == [
        ("echo", "write", 1, 13, 13),
        ("python3", "write", 12 + 6, 1164 + 54, 1164 + 54),
        ("python3", "writev", 1, 59, 59),
    ]
    assert query(
        recording, "SELECT count(*) FROM calls WHERE class = 'write' AND transferred_bytes IS NULL"
    ) == [(0,)]


# Lines of a log, and what it says of each call: name, bytes asked for and moved; the number of lines of output in it.
MIXED = {
    "one line": ('write(1, "hello\\n", 6hello\n)                  = 6\n', [("write", 6, 6)], 1),
    "no newline": ('write(1, "abc", 3abc)                      = 3\n', [("write", 3, 3)], 0),
    "a number": ('write(1, "5", 15)                        = 1\n', [("write", 1, 1)], 0),
    "numbers": ('write(1, "25\\n", 325\n)   = 3\n', [("write", 3, 3)], 1),
    "an end": ('write(1, "a) = 5 (x", 9a) = 5 (x)  = 9\n', [("write", 9, 9)], 0),
    "with times": ('1 1700000000.000001 write(1, "a, (", 4a, () = 4 <0.000010>\n', [("write", 4, 4)], 0),
    "short": ('write(1, "hello\\nyou\\n", 10hello\n)  = 6\n', [("write", 10, 6)], 1),
    "abbreviated": ('write(1, "abc"..., 10abc\n\ndefg\n)  = 10\n', [("write", 10, 10)], 3),
    "abbreviated number": ('write(1, "123"..., 612345\n)  = 6\n', [("write", 6, 6)], 1),
    "events": ('write(1, "--- x ---\\n\\n", 11--- x ---\n\n)  = 11\n', [("write", 11, 11)], 2),
    "half": (
        '[pid 7] write(1, "ab\\n", 3ab\n <unfinished ...>\n[pid 7] <... write resumed>)  = 3\n',
        [("write", 3, 3)],
        1,
    ),
    "another's": (
        '[pid 7] write(1, "ab\\n", 3 <unfinished ...>\n[pid 8] getpid(ab\n)  = 8\n[pid 7] <... write resumed>)  = 3\n',
        [("getpid", None, None), ("write", 3, 3)],
        1,
    ),
    "killed": ('write(1, "ab\\n", 3ab\n)  = ?\n+++ killed by SIGKILL +++\n', [("write", 3, None)], 1),
    "vector": (
        'writev(1, [{iov_base="a", iov_len=1}, {iov_base="b\\n"..., iov_len=4}], 2ab\nc\n)  = 5\n',
        [("writev", 5, 5)],
        2,
    ),
    "file": ("sendfile(1, 3, NULL, 1677721612\n)  = 3\n", [("sendfile", 16777216, 3)], 1),
    "echo": ('read(0, hello\n"hello\\n", 1024)  = 6\n', [("read", 1024, 6)], 1),
}


@pytest.mark.parametrize("name", MIXED)
def test_a_call_with_output_in_its_line(
    name: str, import_log: Import, query: Query, manifest: Callable
) -> None:
    log, calls, lines = MIXED[name]
    recording = import_log(log)
    assert issues(recording, query) == []
    rows = query(recording, "SELECT call, requested_bytes, transferred_bytes FROM calls ORDER BY call")
    assert rows == calls
    [capture] = json.loads((recording / "recording.json").read_text())["captures"]
    assert capture["counts"].get("output_lines", 0) == lines


def test_calls_with_output_one_behind_another(import_log: Import, query: Query) -> None:
    recording = import_log(LOGS / "output.f.strace")
    assert issues(recording, query) == []
    assert query(recording, "SELECT count(*) FROM calls") == [(15,)]


# Logs whose output is not what the call wrote: nothing is guessed, and what stands behind is read.
NOT_OUTPUT = {
    "other text": ('write(1, "hello\\n", 6hullo\n)  = 6\nclose(3) = 0\n', [1, 2]),
    "other count": ('write(1, "hello\\n", 6hello\n)  = 5\nclose(3) = 0\n', [1, 2]),
    "more text": ('write(1, "abc", 3abcd)  = 3\nclose(3) = 0\n', [1]),
    "no end": ('write(1, "hello\\nyou\\n", 10hello\nclose(3) = 0\n', [1]),
    "no end, unknown text": ('write(1, "abc"..., 1000abc\nclose(3) = 0\nclose(4) = 0\nclose(5) = 0\n', [1]),
    "other vector": ('writev(1, [{iov_base="a\\n", iov_len=2}], 2a\n)  = 2\nclose(3) = 0\n', [1, 2]),
    "other echo": ('read(0, hello\n"hullo\\n", 1024)  = 6\nclose(3) = 0\n', [1, 2]),
    "of a child": ("wait4(-1, hello\n[{WIFEXITED(s)}], 0, NULL) = 7\nclose(3) = 0\n", [1, 2]),
    "twice": (
        '[pid 7] write(1, "ab\\n", 3 <unfinished ...>\nab\nab\n[pid 8] close(3) = 0\n[pid 7] <... write resumed>)  = 3\n',
        [3],
    ),
}


@pytest.mark.parametrize("name", NOT_OUTPUT)
def test_what_may_be_other_text_is_not_guessed(name: str, import_log: Import, query: Query) -> None:
    log, places = NOT_OUTPUT[name]
    recording = import_log(log)
    assert [line for line, *_ in issues(recording, query)] == places
    closed = query(recording, "SELECT count(*) FROM calls WHERE call = 'close' AND value = 0")
    assert closed == [(log.count("close("),)]
