"""Rules about how a program as a whole works: sums by hand, look-alikes, edges."""

from __future__ import annotations

import pytest
from make_recording import STARTED_NS
from rule_calls import NO_DURATIONS, many, one, transfers, untimed

MIB = 1 << 20


def spread(calls: list[dict], step_s: float, start_s: float = 0.0) -> list[dict]:
    """The same calls at regular intervals."""
    return [{**call, "t": start_s + number * step_s} for number, call in enumerate(calls)]


# io/cache_rate


def test_a_rate_of_memory_is_found_and_nothing_is_to_win(judge) -> None:
    finding = one(judge("io/cache_rate", transfers("/in", [MIB] * 40, dur_ns=250_000)))
    assert (finding.status, finding.is_note, finding.gain_ns) == ("finding", True, 0)
    assert finding.value == round(40 * MIB / 0.01)
    assert "40.00 MiB of 1 file were read at 3.91 GiB/s" in finding.reason


def test_the_time_of_the_close_belongs_to_writing_and_a_sync_is_the_device(judge) -> None:
    writes = transfers("/out", [MIB] * 40, "write", dur_ns=250_000)
    assert one(judge("io/cache_rate", writes)).status == "finding"
    close = {"call": "close", "path": "/out", "dur_ns": 90_000_000}
    assert one(judge("io/cache_rate", [*writes, close])).status == "ok"
    sync = {"call": "fsync", "class": "sync", "path": "/out", "dur_ns": 1000}
    assert one(judge("io/cache_rate", [*writes, sync])).status == "ok"


def test_little_data_and_a_slow_device_have_no_rate_of_memory(judge) -> None:
    assert one(judge("io/cache_rate", transfers("/in", [MIB] * 31, dur_ns=250_000))).status == "ok"
    assert one(judge("io/cache_rate", transfers("/in", [MIB] * 40, dur_ns=2_000_000))).status == "ok"


# io/mapped_files


def mapping(path: str, length: int, protection: str = "PROT_READ") -> dict:
    """A mapping of a file from its start."""
    row = {"path": path, "address": 4096, "length_bytes": length, "offset_bytes": 0}
    return {**row, "protection": protection, "shared": False}


def test_a_large_mapped_file_is_found(judge) -> None:
    calls = transfers("/small", [100] * 3)
    finding = one(judge("io/mapped_files", calls, mappings=[mapping("/data/image", 20 * MIB)]))
    assert (finding.subject, finding.value, finding.is_note) == ("/data/image", 20 * MIB, True)
    # Mapped again it is still one file.
    twice = one(judge("io/mapped_files", calls, mappings=[mapping("/data/image", 20 * MIB)] * 2))
    assert twice.value == 20 * MIB


def test_libraries_and_what_lies_beside_them_are_left_out(judge) -> None:
    libraries = [mapping("/usr/lib/libbig.so", 90 * MIB, "PROT_READ|PROT_EXEC")]
    libraries.append(mapping("/usr/lib/modules", 129 * MIB))
    assert one(judge("io/mapped_files", transfers("/x", [1]), mappings=libraries)).status == "ok"
    assert (
        one(judge("io/mapped_files", transfers("/x", [1]), mappings=[mapping("/d/a", 15 * MIB)])).status
        == "ok"
    )


def test_a_mapping_that_is_little_beside_the_reads_is_fine(judge) -> None:
    mapped = [mapping("/data/index", 20 * MIB)]
    assert one(judge("io/mapped_files", transfers("/data/all", [MIB] * 250), mappings=mapped)).status == "ok"


# io/single_stream


def test_one_thread_that_waits_is_found(judge) -> None:
    calls = spread(transfers("/net/in", [65536] * 60, dur_ns=5_000_000), 0.005)
    finding = one(judge("io/single_stream", calls))
    assert (finding.status, finding.certainty, finding.process) == ("finding", "low", 100)
    assert (finding.cost_ns, finding.gain_ns) == (59 * 5_000_000, 59 * 5_000_000 * 3 // 4)


def test_several_threads_or_memory_are_fine(judge) -> None:
    calls = spread(transfers("/net/in", [65536] * 120, dur_ns=5_000_000), 0.005)
    shared = [{**call, "tid": 100 + number % 2, "pid": 100} for number, call in enumerate(calls)]
    assert one(judge("io/single_stream", shared)).status == "ok"
    quick = spread(transfers("/net/in", [65536] * 60, dur_ns=30_000), 0.00003)
    assert one(judge("io/single_stream", quick)).status == "ok"
    large = spread(transfers("/in", [MIB] * 60, dur_ns=500_000), 0.0005)
    assert one(judge("io/single_stream", large)).status == "ok"


# io/shared_file


def users(writes: int, gap_s: float = 0.0, **more: object) -> list[dict]:
    """Two processes that write one file in turn, or one after another."""
    one_ = spread(transfers("/log", [10] * writes, "write", dur_ns=50_000, pid=1, tid=1, **more), 0.0001)
    other = transfers("/log", [10] * writes, "write", dur_ns=50_000, pid=2, tid=2, **more)
    return one_ + spread(other, 0.0001, gap_s)


def test_two_writers_at_a_time_are_found(judge) -> None:
    finding = one(judge("io/shared_file", users(60)))
    assert (finding.subject, finding.value, finding.certainty) == ("/log", 2, "medium")
    assert (finding.cost_ns, finding.gain_ns) == (120 * 50_000, 120 * 50_000 // 2)
    assert "2 of them writing, without locks: 120 reads and writes" in finding.reason


def test_one_after_the_other_few_writes_and_readers_alone_are_fine(judge) -> None:
    assert one(judge("io/shared_file", users(60, gap_s=1.0))).status == "ok"
    assert one(judge("io/shared_file", users(49))).status == "ok"
    readers = [{**call, "call": "read", "class": "read"} for call in users(60)]
    assert one(judge("io/shared_file", readers)).status == "ok"


def test_the_time_for_locks_counts(judge) -> None:
    lock = {"call": "flock", "class": "lock", "path": "/log", "dur_ns": 1_000_000, "pid": 1, "tid": 1}
    finding = one(judge("io/shared_file", [*users(60), lock, {**lock, "pid": 2, "tid": 2}]))
    assert (finding.cost_ns, finding.certainty) == (120 * 50_000 + 2_000_000, "high")
    assert "2.00 ms for locks" in finding.reason


# io/log_incomplete


def test_what_is_missing_is_said_and_is_no_cost(judge) -> None:
    calls = transfers("/in", [10] * 10)
    assert one(judge("io/log_incomplete", calls)).status == "ok"
    issue = {"source": "t.log", "line": 7, "issue": "unknown_line", "understood": False}
    manifest = {"lines_total": 12, "lines_understood": 11, "lost_events": 3, "complete": False}
    found = judge("io/log_incomplete", calls, import_issues=[issue], **manifest)
    assert {finding.subject for finding in found} == {"lines", "events", "the end"}
    assert all(finding.is_note for finding in found)
    assert "1 of 12 lines could not be parsed; the first is line 7." in {finding.reason for finding in found}


def test_io_without_calls_is_named(judge) -> None:
    issue = {"source": "t.log", "line": 5, "issue": "invisible_io", "understood": True}
    found = judge("io/log_incomplete", transfers("/in", [10]), import_issues=[issue])
    assert [finding.subject for finding in found] == ["I/O without calls"]


def test_a_log_without_durations_is_named(judge) -> None:
    found = judge("io/log_incomplete", untimed(transfers("/in", [10])), clock=NO_DURATIONS)
    assert [finding.subject for finding in found] == ["durations"]


# processes/process_creation


def children(count: int, life_s: float, every_s: float) -> list[dict]:
    """A parent and its children, which run one after another."""
    row = {"execs": 1, "calls": 1, "depth": 1, "comm_id": 0}
    end = STARTED_NS + round(count * every_s * 1e9)
    rows = [
        {**row, "pid": 1, "tid": 1, "depth": 0, "tree_order": 0, "start_ts_ns": STARTED_NS, "end_ts_ns": end}
    ]
    for number in range(count):
        start = STARTED_NS + round(number * every_s * 1e9)
        times = {"start_ts_ns": start, "end_ts_ns": start + round(life_s * 1e9)}
        rows.append(
            {**row, "pid": 2 + number, "tid": 2 + number, "ppid": 1, "tree_order": number + 1, **times}
        )
    return rows


def starts(judge, rows: list[dict]) -> object:
    """What the rule says of a parent that waits for these children."""
    end_s = (rows[0]["end_ts_ns"] - STARTED_NS) / 1e9
    waiting = {
        "call": "wait4",
        "class": "wait",
        "pid": 1,
        "tid": 1,
        "comm": "cat",
        "dur_ns": round(end_s * 1e9),
    }
    return one(judge("processes/process_creation", [waiting], processes=rows))


def test_many_short_processes_are_found_and_time_counts_once(judge) -> None:
    finding = starts(judge, children(100, 0.009, 0.01))
    assert (finding.status, finding.subject, finding.value) == ("finding", "cat", 100)
    assert (finding.cost_ns, finding.gain_ns) == (900_000_000, 891_000_000)
    # Two at a time: half of the time, though each lives as long.
    overlapping = starts(judge, children(100, 0.01, 0.005))
    assert overlapping.cost_ns == 505_000_000


@pytest.mark.parametrize(
    ("count", "life_s", "every_s"), [(49, 0.009, 0.01), (60, 0.6, 0.7), (60, 0.001, 0.1)]
)
def test_few_long_or_rare_processes_are_fine(judge, count: int, life_s: float, every_s: float) -> None:
    assert starts(judge, children(count, life_s, every_s)).status == "ok"


# processes/gaps


def test_gaps_are_measured_to_the_nanosecond(judge) -> None:
    ends = [
        {"call": "close", "path": "/a", "dur_ns": 1000},
        {"call": "close", "path": "/a", "dur_ns": 1000, "t": 2.0},
    ]
    sleep = {"call": "nanosleep", "class": "wait", "t": 0.5, "dur_ns": 1_400_000_000}
    finding = one(judge("processes/gaps", [*ends, sleep]))
    assert (finding.subject, finding.cost_ns, finding.gain_ns) == ("sleeps", 1_999_999_000, 1_999_999_000)
    assert (finding.from_s, finding.until_s) == (0.000001, 2.0)


def test_what_computes_may_win_no_more_than_its_io(judge) -> None:
    calls = [
        {"call": "read", "path": "/a", "dur_ns": 300_000_000},
        {"call": "close", "path": "/a", "dur_ns": 0, "t": 2.0},
    ]
    thread = {"pid": 100, "tid": 100, "process_id": 0, "depth": 0, "tree_order": 0, "execs": 1, "calls": 2}
    thread |= {"start_ts_ns": 1_700_000_000_000_000_000, "user_ns": 1_700_000_000}
    finding = one(judge("processes/gaps", calls, processes=[thread]))
    assert (finding.subject, finding.cost_ns, finding.gain_ns) == ("computes", 1_700_000_000, 300_000_000)
    # A log has no CPU times, and its calls took longer than they would alone.
    assert one(judge("processes/gaps", calls)).gain_ns is None


def test_waiting_for_a_pipe_is_told_apart(judge) -> None:
    ends = [
        {"call": "close", "path": "/a", "dur_ns": 1000},
        {"call": "close", "path": "/a", "dur_ns": 1000, "t": 2.0},
    ]
    read = {"call": "read", "path": "pipe:[1]", "kind": "pipe", "t": 0.1, "dur_ns": 1_800_000_000}
    finding = one(judge("processes/gaps", [*ends, read]))
    assert (finding.subject, finding.certainty, finding.is_note) == ("waits", "low", True)


def test_a_long_call_and_short_gaps_are_none(judge) -> None:
    long = [*many(1, "read", "read", "/a"), {"call": "close", "path": "/a", "dur_ns": 0, "t": 2.0}]
    long[0]["dur_ns"] = 1_900_000_000
    assert one(judge("processes/gaps", long)).status == "ok"
    steps = spread(many(5, "close", "close", "/a"), 0.49)
    assert one(judge("processes/gaps", steps)).status == "ok"
