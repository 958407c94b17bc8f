"""Faults that people reported in public, each as a log of its class: the cause comes first, under all names of its calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sysdock.analysis import Finding, Session
from sysdock.library import Library
from sysdock.recording import Recording
from sysdock.sentences import say

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
    """A loop in which events are reported and never handled."""
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


def closing(errno: str) -> Iterator[tuple[str, str, float]]:
    """Closes of one descriptor after another."""
    for number in range(3, 4000):
        yield f"close({number})", f"-1 {errno} (...)", 7e-6


def queries(poll: str, remote: str) -> Iterator[tuple[str, str, float]]:
    """Requests of which every first one gets no answer."""
    for port in range(4):
        socket = f"5<UDP:[192.0.2.4:4000{port}->{remote}]>"
        for number in range(2):
            yield f'sendto({socket}, "..."..., 52, MSG_NOSIGNAL, NULL, 0)', "52", 6e-5
            yield poll.format(socket=socket), str(number), 0.002 if number else 5.005
        yield f'recvfrom({socket}, "..."..., 1024, 0, NULL, NULL)', "68", 2e-5
        yield f"close({socket})", "0", 6e-6


def connections(result: str) -> Iterator[tuple[str, str, float]]:
    """Two addresses of a name that cannot be reached, on one socket, and one that can."""
    for number in (1, 2):
        address = f'inet_pton(AF_INET6, "2001:db8::{number}", &sin6_addr)'
        yield (
            f"connect(4<socket:[8]>, {{sa_family=AF_INET6, sin6_port=htons(80), {address}}}, 28)",
            result,
            3.06,
        )
    yield (
        'connect(5<socket:[9]>, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("192.0.2.9")}, 16)',
        "0",
        0.02,
    )


def reserving() -> Iterator[tuple[str, str, float]]:
    """What glibc does where the file system cannot reserve space."""
    yield "fallocate(5</nfs/log>, 0, 0, 8192000)", "-1 EOPNOTSUPP (Operation not supported)", 5e-6
    for block in range(1, 2001):
        yield f'pwrite64(5</nfs/log>, "\\0", 1, {4096 * block - 1})', "1", 8e-5


def filling(flags: str) -> Iterator[tuple[str, str, float]]:
    """Writes of which every seventh takes 0.2 s."""
    yield f'openat(AT_FDCWD, "/data/x", O_WRONLY|O_CREAT{flags}, 0666)', "3</data/x>", 2e-5
    for number in range(140):
        yield 'write(3</data/x>, "..."..., 1048576)', "1048576", 4e-4 if number % 7 else 0.2


def asking() -> Iterator[tuple[str, str, float]]:
    """The same question over and over."""
    for _ in range(1500):
        yield 'statfs("/srv/cache", {f_type=0x1021994, f_bsize=4096})', "0", 2e-4
        yield 'stat("/srv/cache", {st_mode=S_IFDIR|0755, st_size=40, ...})', "0", 2e-4


@pytest.mark.parametrize(
    ("calls", "rule", "variant"),
    [
        (closing("EBADF"), "io/failing_calls", "descriptors"),
        (closing("EIO"), "io/failing_calls", "pathless"),
        (
            queries("poll([{{fd={socket}, events=POLLIN}}], 1, 5000)", "192.0.2.10:53"),
            "network/no_answer",
            "name",
        ),
        (
            queries("select(6, [5], NULL, NULL, {{tv_sec=5}})", "192.0.2.10:9042"),
            "network/no_answer",
            "other",
        ),
        (connections("-1 EHOSTUNREACH (No route to host)"), "network/connect", "failed"),
        (connections("-1 ETIMEDOUT (Connection timed out)"), "network/connect", "failed"),
        (reserving(), "io/emulated_reservation", None),
        (filling(""), "io/throttled_writes", None),
        (asking(), "io/repeated_stat", "timed"),
    ],
    ids=[
        "closes",
        "failing",
        "names",
        "requests",
        "unreachable",
        "timeout",
        "reserved",
        "throttled",
        "asked",
    ],
)
def test_the_cause_comes_first(
    calls: Iterator[tuple[str, str, float]],
    rule: str,
    variant: str | None,
    findings: Callable[[str], list[Finding]],
) -> None:
    found = findings(lines(calls))
    assert (found[0].rule, found[0].variant) == (rule, variant)
    advice = {"time/polling", "time/peer", "io/single_stream", "io/small_requests"}
    assert not advice & {each.rule for each in found}


def test_both_addresses_of_a_socket_are_named(findings: Callable[[str], list[Finding]]) -> None:
    [found] = findings(lines(connections("-1 EHOSTUNREACH (No route to host)")))
    assert "[2001:db8::1]:80, [2001:db8::2]:80" in say(found.reason, "en")


def test_a_question_is_counted_where_the_log_has_no_durations(
    findings: Callable[[str], list[Finding]],
) -> None:
    log = re.sub(r" <[0-9.]+>$", "", lines(asking()), flags=re.MULTILINE)
    assert ("io/repeated_stat", "counted", "low") in [(f.rule, f.variant, f.certainty) for f in findings(log)]
