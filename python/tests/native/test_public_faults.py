"""Faults that people reported in public, each as a log of its class: the cause comes first, under all names of its calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sysdock.analysis import Finding, Session
from sysdock.library import Library
from sysdock.recording import Recording

START = '7 1718000000.000000 execve("/srv/daemon", ["daemon"], 0x7ffd00 /* 20 vars */) = 0 <0.000500>'


def lines(calls: Iterator[tuple[str, str, float]], first: str | None = START, gap: float = 0.00001) -> str:
    """A log of calls, each given with its result and duration in seconds, one after another."""
    now = 1718000000.001
    text = [] if first is None else [first]
    for call, result, duration in calls:
        text.append(f"7 {now:.6f} {call} = {result} <{duration:.6f}>")
        now += duration + gap
    return "\n".join(text) + "\n"


def polling(sleep: str) -> Iterator[tuple[str, str, float]]:
    """Sleeps of 1 ms, and a look in between that finds nothing."""
    for _ in range(600):
        yield sleep, "0", 0.00107
        yield (
            "recvfrom(5<socket:[77]>, 0x7ffd00, 4096, MSG_DONTWAIT, NULL, NULL)",
            "-1 EAGAIN (Resource temporarily unavailable)",
            3e-6,
        )


SLEEPS = (
    "clock_nanosleep(CLOCK_REALTIME, 0, {tv_sec=0, tv_nsec=1000000}, NULL)",
    "clock_nanosleep_time64(CLOCK_REALTIME, 0, {tv_sec=0, tv_nsec=1000000}, NULL)",
    "nanosleep({tv_sec=0, tv_nsec=1000000}, NULL)",
)
POLLS = (
    "poll(NULL, 0, 1)",
    "select(0, NULL, NULL, NULL, {tv_sec=0, tv_usec=1000})",
    "_newselect(0, NULL, NULL, NULL, {tv_sec=0, tv_usec=1000})",
    "pselect6_time64(0, NULL, NULL, NULL, {tv_sec=0, tv_nsec=1000000}, NULL)",
    "ppoll_time64([], 0, {tv_sec=0, tv_nsec=1000000}, NULL, 8)",
    "epoll_pwait(3<anon_inode:[eventpoll]>, [], 8, 1, NULL, 8)",
)


def at_the_end(read: str) -> Iterator[tuple[str, str, float]]:
    """A loop that reads at the end of a connection."""
    for _ in range(3000):
        yield read, "0", 3e-6
        yield (
            "epoll_wait(3<anon_inode:[eventpoll]>, [{events=EPOLLIN, data={u32=0, u64=0}}], 9, 0)",
            "1",
            3e-6,
        )
        yield 'write(4<anon_inode:[eventfd]>, "\\1\\0\\0\\0\\0\\0\\0\\0", 8)', "8", 3e-6
        yield "clock_gettime64(CLOCK_MONOTONIC, {tv_sec=1, tv_nsec=1})", "0", 3e-6


def ignored(poll: str) -> Iterator[tuple[str, str, float]]:
    """A loop that is told of events and does nothing about them."""
    for _ in range(6000):
        yield poll, "2", 4e-6
        yield "clock_gettime(CLOCK_MONOTONIC, {tv_sec=1, tv_nsec=1})", "0", 3e-6


@pytest.fixture
def findings(import_log: Callable[..., Path]) -> Callable[[str], list[Finding]]:
    """The findings about a log, the first ones first."""

    def judge(log: str) -> list[Finding]:
        with Session(Recording.open(import_log(log)), Library()) as session:
            return [each for each in session.diagnose() if each.status == "finding"]

    return judge


@pytest.mark.parametrize("first", [START, None], ids=["command", "attached"])
@pytest.mark.parametrize("sleep", [*SLEEPS, *POLLS])
def test_polling(sleep: str, first: str | None, findings: Callable[[str], list[Finding]]) -> None:
    found = findings(lines(polling(sleep), first))
    assert (found[0].rule, found[0].variant) == ("time/polling", "sleep" if sleep in SLEEPS else "timeout")


@pytest.mark.parametrize("first", [START, None], ids=["command", "attached"])
@pytest.mark.parametrize(
    "read",
    [
        'read(11<socket:[44]>, "", 8192)',
        'recv(11<socket:[44]>, "", 8192, 0)',
        'readv(11<pipe:[8]>, [{iov_base="", iov_len=9}], 1)',
    ],
)
def test_reading_at_the_end(read: str, first: str | None, findings: Callable[[str], list[Finding]]) -> None:
    found = findings(lines(at_the_end(read), first))
    assert [(each.rule, each.variant) for each in found] == [("calls/busy_loop", "end")]


@pytest.mark.parametrize(
    "poll",
    [
        "epoll_wait(3<anon_inode:[eventpoll]>, [{EPOLLIN, {u32=5, u64=5}}, {EPOLLIN, {u32=6, u64=6}}], 32, 998)",
        "poll([{fd=5<socket:[77]>, events=POLLIN}, {fd=6<socket:[78]>, events=POLLIN}], 2, 998)",
        "ppoll_time64([{fd=5, events=POLLIN}, {fd=6, events=POLLIN}], 2, NULL, NULL, 8)",
    ],
)
def test_events_that_nobody_handles(poll: str, findings: Callable[[str], list[Finding]]) -> None:
    found = findings(lines(ignored(poll)))
    assert [(each.rule, each.variant) for each in found] == [("calls/busy_loop", "ready")]


IN_NAMESPACE = """\
4233 1718000000.000000 execve("/usr/bin/unshare", ["unshare", "-pf", "sh"], 0x7ffd00 /* 20 vars */) = 0 <0.000500>
4233 1718000000.001000 unshare(CLONE_NEWNS|CLONE_NEWPID) = 0 <0.000083>
4233 1718000000.002000 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f64) = 4234 <0.000159>
4234 1718000000.003000 execve("/bin/sh", ["sh"], 0x7ffd00 /* 20 vars */) = 0 <0.000500>
4234 1718000000.004000 set_tid_address(0x7f64) = 1 <0.000002>
4234 1718000000.005000 vfork( <unfinished ...>
4235 1718000000.006000 execve("/bin/cat", ["cat"], 0x7ffd00 /* 20 vars */) = 0 <0.000500>
4234 1718000000.007000 <... vfork resumed>) = 2 <0.002000>
4234 1718000000.008000 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7fbc) = 3 <0.000097>
4234 1718000000.009000 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7fbc) = 4 <0.000097>
4237 1718000000.010000 execve("/bin/wc", ["wc"], 0x7ffd00 /* 20 vars */) = 0 <0.000500>
4236 1718000000.011000 execve("/bin/ls", ["ls"], 0x7ffd00 /* 20 vars */) = 0 <0.000500>
4235 1718000000.012000 +++ exited with 0 +++
4236 1718000000.013000 +++ exited with 0 +++
4237 1718000000.014000 +++ exited with 0 +++
4234 1718000000.015000 +++ exited with 0 +++
4233 1718000000.016000 +++ exited with 0 +++
"""
TREE = [
    (4233, None, "unshare"),
    (4234, 4233, "sh"),
    (4235, 4234, "cat"),
    (4236, 4234, "ls"),
    (4237, 4234, "wc"),
]
NOTES = ((") = 2 <", 4235), (") = 3 <", 4236), (") = 4 <", 4237))


@pytest.mark.parametrize("has_notes", [False, True], ids=["plain", "decoded"])
def test_processes_of_a_pid_namespace(
    has_notes: bool, import_log: Callable[..., Path], open_session: Callable
) -> None:
    log = IN_NAMESPACE
    for text, pid in NOTES if has_notes else ():
        log = log.replace(text, text[:-1] + f"/* {pid} in strace's PID NS */ <")
    rows = open_session(import_log(log)).fetch("SELECT pid, ppid, comm, calls FROM processes ORDER BY pid")
    assert [tuple(row[:3]) for row in rows] == TREE
    assert all(calls > 0 for *_, calls in rows)
