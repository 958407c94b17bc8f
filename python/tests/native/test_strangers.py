"""Logs of strangers: old versions of strace, other architectures, logs of standard error with all that stands in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from stated import stated

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


# What strace 4.5 wrote to standard error with -f.
OLD = """\
Process 100 attached - interrupt to quit
SYS_290(0x1, 0xbe9a, 0x2)               = 0
open("/nowhere", O_RDONLY)              = -2 ENOENT (No such file or directory)
ioctl(3, 0x5401, 0xbe9a)                = -1 (errno 25)
read(3, 0xbe9a, 10)                     = -1 errno: 11
clone(Process 101 attached (waiting for parent)
Process 101 resumed (parent 100 ready)
child_stack=0, flags=CLONE_CHILD_CLEARTID|SIGCHLD, child_tidptr=0xb7d) = 101
[pid   100] wait4(-1, Process 100 suspended
 <unfinished ...>
[pid   101] SYS_290(0x5 <unfinished ...>
[pid   101] <... SYS_290 resumed> )     = 3
[pid   101] [ Process PID=101 runs in 32 bit mode. ]
[pid   101] exit_group(0)               = ?
Process 100 resumed
Process 101 detached
<... wait4 resumed> [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 101
--- SIGCHLD (Child exited) @ 0 (0) ---
--- SIGUSR1 ---
--- {si_signo=SIGINT, si_code=SI_USER} (Interrupt) ---
Process 100 detached
"""


def test_forms_of_old_versions(import_log: Import, query: Query, manifest: Callable) -> None:
    recording = import_log(OLD)
    assert issues(recording, query) == []
    assert manifest(recording)["issues"] == {}
    rows = query(recording, "SELECT tid, call, value, errno FROM calls JOIN processes USING (task_id) ORDER BY ts_ns")
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
