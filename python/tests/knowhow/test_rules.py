"""Rules on the patterns they are for, and on those they must leave alone."""

from __future__ import annotations

import pytest
from rule_calls import one, opens, transfers
from sysdock.library import Library


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


def test_a_small_request_on_a_pipe_costs_no_more_than_a_call(judge) -> None:
    calls = [{**call, "dur_ns": 5_000_000} for call in transfers("pipe:[1]", [10] * 300, kind="pipe")]
    finding = one(judge("io/small_requests", calls))
    assert (finding.status, finding.cost_ns, finding.certainty) == ("finding", 300 * 100_000, "medium")


@pytest.mark.parametrize(("asked", "status"), [(511, "finding"), (512, "ok")])
def test_a_read_of_a_pipe_that_asks_for_more_takes_what_there_is(judge, asked: int, status: str) -> None:
    calls = transfers("pipe:[1]", [10] * 300, kind="pipe", requested_bytes=asked)
    assert one(judge("io/small_requests", calls)).status == status


def test_short_reads_of_a_file_that_is_short_are_not_small_requests(judge) -> None:
    assert one(judge("io/small_requests", transfers("/in", [40] * 300, requested_bytes=4096))).status == "ok"


def test_small_requests_of_unnamed_files_cannot_be_judged(judge) -> None:
    unnamed = [{**call, "path": None} for call in transfers("/x", [40] * 200)]
    finding = one(judge("io/small_requests", transfers("/out", [40] * 3, "write") + unnamed))
    assert finding.status == "unknown"
    assert "200 small requests are to files" in finding.reason
    few = one(judge("io/small_requests", transfers("/out", [40] * 3, "write") + unnamed[:50]))
    assert few.status == "ok"


def test_small_requests_that_cost_nothing_are_no_finding(judge) -> None:
    slow = [{"call": "openat", "path": "/slow", "result": 3, "dur_ns": 10_000_000_000}]
    assert one(judge("io/small_requests", transfers("/out", [40] * 200) + slow)).status == "ok"


def test_without_durations_a_finding_has_no_cost(judge) -> None:
    calls = [{**call, "dur_ns": None} for call in transfers("/out", [40] * 200)]
    finding = one(judge("io/small_requests", calls))
    assert (finding.status, finding.cost_ns, finding.gain_ns) == ("finding", None, None)


def test_small_operations_of_libaio_have_no_cost(judge) -> None:
    small = transfers("/db", [40] * 200, "aio_pread", via="libaio", **{"class": "read"})
    finding = one(judge("io/small_requests", small))
    assert (finding.status, finding.cost_ns, finding.gain_ns) == ("finding", None, None)
    findings = judge("io/small_requests", small + transfers("/out", [40] * 200, "write"))
    assert [(finding.subject, finding.cost_ns) for finding in findings] == [("/out", 200_000), ("/db", None)]


def test_at_most_ten_subjects_and_the_rest_is_stated(judge) -> None:
    calls = [call for n in range(13) for call in transfers(f"/out/{n:02}", [40] * (200 + n))]
    findings = judge("io/small_requests", calls)
    assert [finding.others for finding in findings] == [0] * 9 + [3]
    assert findings[0].subject == "/out/12"


def test_a_file_opened_for_every_record_is_found(judge) -> None:
    finding = one(judge("io/repeated_open", opens("/etc/app.conf", 100)))
    assert (finding.status, finding.subject, finding.value) == ("finding", "/etc/app.conf", 100)
    # One call less than all: the longest may be an outlier.
    assert (finding.cost_ns, finding.gain_ns) == (200_000, 199_000 * 99 // 100)
    assert finding.reason == "Opened 100 times by 1 process."


def test_a_process_per_record_is_one_finding(judge) -> None:
    calls = opens("/lib/libc.so", 120, 120, dur_ns=3000) + opens("/etc/ld.so.cache", 120, 120)
    finding = one(judge("io/repeated_open", calls))
    assert (finding.status, finding.subject) == ("finding", "/lib/libc.so")
    assert "120 processes, and 1 other file likewise" in finding.reason


def test_failed_opens_do_not_count_as_opens(judge) -> None:
    calls = [{"call": "openat", "path": "/no", "errno": "ENOENT", "dur_ns": 1000}] * 90
    assert one(judge("io/repeated_open", calls)).status == "ok"


def test_calls_that_always_fail_are_found(judge) -> None:
    calls = [
        {"call": "lgetxattr", "class": "attr", "path": f"/d/{n}", "errno": "ENODATA", "dur_ns": 1000}
        for n in range(150)
    ]
    finding = one(judge("io/failing_calls", calls))
    assert (finding.status, finding.subject, finding.value) == ("finding", "lgetxattr ENODATA", 100)
    assert finding.cost_ns == finding.gain_ns == 150_000
    assert "150 of 150 calls" in finding.reason
    assert "150 paths" in finding.reason
    assert finding.evidence == "io/errors --call lgetxattr"


def test_rare_failures_are_fine(judge) -> None:
    fails = [{"call": "openat", "path": "/yes", "errno": "EACCES", "dur_ns": 1000}] * 110
    assert one(judge("io/failing_calls", fails + opens("/yes", 1200))).status == "ok"


def test_a_path_that_is_never_there_is_found(judge) -> None:
    asks = [{"call": "access", "class": "stat", "path": "/run/stop", "errno": "ENOENT", "dur_ns": 1000}] * 110
    finding = one(judge("io/failing_calls", asks + opens("/yes", 10)))
    assert (finding.subject, finding.value, finding.cost_ns) == ("/run/stop", 100, 110_000)
    assert finding.evidence == "io/errors --file /run/stop"
    # One that comes into being is waited for, not missing.
    there = [{**asks[0], "errno": None, "result": 0}] * 20
    assert one(judge("io/failing_calls", asks + there)).status == "ok"


@pytest.mark.parametrize("errno", ["EAGAIN", "EINTR", "ERESTARTSYS", "ERESTART_RESTARTBLOCK", "ETIMEDOUT"])
def test_errors_of_normal_waiting_do_not_count(judge, errno: str) -> None:
    calls = [{"call": "read", "path": "pipe", "kind": "pipe", "errno": errno, "dur_ns": 1000}] * 200
    assert one(judge("io/failing_calls", calls)).status == "ok"


@pytest.mark.parametrize("rule", [rule.id for rule in Library().rules()])
def test_without_any_call_nothing_can_be_judged(judge, rule: str) -> None:
    assert one(judge(rule, [])).status == "unknown"
