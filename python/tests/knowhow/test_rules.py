"""Rules on the patterns they are for, and on those they must leave alone."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from make_recording import RecordingMaker
from sysdock.analysis import Finding, Session
from sysdock.library import Library
from sysdock.recording import Recording

Calls = list[dict[str, Any]]


@pytest.fixture
def judge(library: Library, maker: RecordingMaker):
    """What one rule says of a recording of these calls."""
    numbers = itertools.count()

    def judged(rule: str, calls: Calls) -> list[Finding]:
        folder = maker.make(calls, name=f"rec{next(numbers)}")
        with Session(Recording.open(folder), library) as session:
            return [finding for finding in session.diagnose() if finding.rule == rule]

    return judged


def one(findings: list[Finding]) -> Finding:
    """The only finding."""
    assert len(findings) == 1
    return findings[0]


def transfers(path: str, sizes: list[int], call: str = "read", **more: Any) -> Calls:
    """Reads or writes of one file."""
    return [
        {"call": call, "path": path, "moved_bytes": n, "result": n, "dur_ns": 1000, **more} for n in sizes
    ]


def opens(path: str, count: int, pids: int = 1, **more: Any) -> Calls:
    """Opens and closes of one file, by that many processes in turn."""
    calls = []
    for number in range(count):
        pid = {"pid": 100 + number % pids, "tid": 100 + number % pids, "dur_ns": 1000}
        calls.append({"call": "openat", "path": path, "result": 3, **pid, **more})
        calls.append({"call": "close", "path": path, **pid})
    return calls


def test_many_small_writes_are_found(judge) -> None:
    finding = one(judge("io/small_requests", transfers("/out", [40] * 200, "write")))
    assert (finding.status, finding.subject, finding.value) == ("finding", "/out", 40)
    assert (finding.cost_ns, finding.gain_ns) == (200_000, 199_000)
    assert finding.evidence == "io/files --file /out"


def test_many_small_files_read_once_each_are_not(judge) -> None:
    calls = [call for n in range(300) for call in transfers(f"/doc/{n}", [700, 0])]
    assert one(judge("io/small_requests", calls)).status == "ok"


def test_reads_of_a_whole_buffer_are_not_small(judge) -> None:
    assert one(judge("io/small_requests", transfers("/in", [4096] * 300 + [12, 0]))).status == "ok"


def test_a_library_read_a_little_by_many_processes_is_left_to_repeated_open(judge) -> None:
    calls = [
        call for pid in range(1, 101) for call in transfers("/lib/libc.so", [832, 784], pid=pid, tid=pid)
    ]
    assert one(judge("io/small_requests", calls)).status == "ok"


def test_small_messages_on_a_pipe_are_not_of_a_file(judge) -> None:
    assert one(judge("io/small_requests", transfers("pipe:[1]", [10] * 300, kind="pipe"))).status == "unknown"


def test_small_requests_of_unnamed_files_cannot_be_judged(judge) -> None:
    unnamed = [{**call, "path": None} for call in transfers("/x", [40] * 200)]
    finding = one(judge("io/small_requests", transfers("/out", [40] * 3, "write") + unnamed))
    assert finding.status == "unknown"
    assert "200 small reads and writes" in finding.reason
    few = one(judge("io/small_requests", transfers("/out", [40] * 3, "write") + unnamed[:50]))
    assert few.status == "ok"


def test_small_requests_that_cost_nothing_are_no_finding(judge) -> None:
    slow = [{"call": "openat", "path": "/slow", "result": 3, "dur_ns": 10_000_000_000}]
    assert one(judge("io/small_requests", transfers("/out", [40] * 200) + slow)).status == "ok"


def test_waiting_does_not_hide_a_finding(judge) -> None:
    wait = [{"call": "wait4", "class": "wait", "result": 1, "dur_ns": 10_000_000_000}]
    assert one(judge("io/small_requests", transfers("/out", [40] * 200) + wait)).status == "finding"


def test_without_durations_a_finding_has_no_cost(judge) -> None:
    calls = [{**call, "dur_ns": None} for call in transfers("/out", [40] * 200)]
    finding = one(judge("io/small_requests", calls))
    assert (finding.status, finding.cost_ns, finding.gain_ns) == ("finding", None, None)


def test_small_operations_of_libaio_have_no_cost(judge) -> None:
    small = transfers("/db", [40] * 200, "aio_pread", via="libaio", **{"class": "read"})
    slow = [{"call": "openat", "path": "/slow", "result": 3, "dur_ns": 10_000_000_000}]
    finding = one(judge("io/small_requests", small + slow))
    assert (finding.status, finding.cost_ns, finding.gain_ns) == ("finding", None, None)
    # Nor do they hide what other calls cost.
    busy = [{**call, "dur_ns": 10_000_000_000} for call in small]
    findings = judge("io/small_requests", busy + transfers("/out", [40] * 200, "write"))
    assert [(finding.subject, finding.cost_ns) for finding in findings] == [("/out", 200_000), ("/db", None)]


def test_at_most_ten_subjects_and_the_rest_is_stated(judge) -> None:
    calls = [call for n in range(13) for call in transfers(f"/out/{n:02}", [40] * (100 + n))]
    findings = judge("io/small_requests", calls)
    assert len(findings) == 10
    assert sum("3 more like this are not shown" in finding.reason for finding in findings) == 1


def test_a_file_opened_for_every_record_is_found(judge) -> None:
    finding = one(judge("io/repeated_open", opens("/etc/app.conf", 80)))
    assert (finding.status, finding.subject, finding.value) == ("finding", "/etc/app.conf", 80)
    assert (finding.cost_ns, finding.gain_ns) == (160_000, 158_000)
    assert finding.reason == "Opened 80 times by 1 process."


def test_a_process_per_record_is_one_finding(judge) -> None:
    calls = opens("/lib/libc.so", 60, 60, dur_ns=3000) + opens("/etc/ld.so.cache", 60, 60)
    finding = one(judge("io/repeated_open", calls))
    assert (finding.status, finding.subject) == ("finding", "/lib/libc.so")
    assert "60 processes, and 1 other file(s) likewise" in finding.reason


def test_failed_opens_do_not_count_as_opens(judge) -> None:
    calls = [{"call": "openat", "path": "/no", "errno": "ENOENT", "dur_ns": 1000}] * 90
    assert one(judge("io/repeated_open", calls)).status == "unknown"


def test_calls_that_always_fail_are_found(judge) -> None:
    calls = [
        {"call": "lgetxattr", "class": "attr", "path": f"/d/{n}", "errno": "ENODATA", "dur_ns": 1000}
        for n in range(150)
    ]
    finding = one(judge("io/failing_calls", calls))
    assert (finding.status, finding.subject, finding.value) == ("finding", "lgetxattr ENODATA", 100)
    assert finding.cost_ns == finding.gain_ns == 150_000
    assert "150 of 150 calls" in finding.reason
    assert "150 path(s)" in finding.reason
    assert finding.evidence == "io/errors --call lgetxattr"


def test_rare_failures_are_fine(judge) -> None:
    fails = [{"call": "openat", "path": "/no", "errno": "ENOENT", "dur_ns": 1000}] * 110
    assert one(judge("io/failing_calls", fails + opens("/yes", 1200))).status == "ok"


@pytest.mark.parametrize("errno", ["EAGAIN", "EINTR", "ERESTARTSYS", "ERESTART_RESTARTBLOCK", "ETIMEDOUT"])
def test_errors_of_normal_waiting_do_not_count(judge, errno: str) -> None:
    calls = [{"call": "read", "path": "pipe", "kind": "pipe", "errno": errno, "dur_ns": 1000}] * 200
    assert one(judge("io/failing_calls", calls)).status == "ok"


@pytest.mark.parametrize("rule", ["io/small_requests", "io/repeated_open"])
def test_without_calls_of_the_kind_a_rule_cannot_judge(judge, rule: str) -> None:
    assert one(judge(rule, [{"call": "getpid"}])).status == "unknown"


def test_without_any_call_failures_cannot_be_judged(judge) -> None:
    assert one(judge("io/failing_calls", [])).status == "unknown"
