"""Analyses at the edges that the examples in their pages do not show."""

from __future__ import annotations

from typing import Any

import pytest
from make_recording import STARTED_NS, RecordingMaker
from sysdock.analysis import Session
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.recording import Filters, Recording


@pytest.fixture
def run(library: Library, maker: RecordingMaker):
    """Runs an analysis on a recording of these calls; rows as dicts."""

    def ran(id_: str, calls: list[dict[str, Any]], params=None, filters=None, **extra: Any) -> list[dict]:
        with Session(Recording.open(maker.make(calls, **extra)), library, filters) as session:
            result = session.run(id_, params)
            names = [column.name for column in result.columns]
            return [dict(zip(names, row, strict=True)) for row in result.rows()]

    return ran


def reads(sizes: list[int], **more: Any) -> list[dict[str, Any]]:
    """One read per size."""
    return [{"call": "read", "path": "/a", "transferred_bytes": n, "result": n, **more} for n in sizes]


def test_classes_are_exact_at_every_power_of_two(run) -> None:
    sizes = sorted({(1 << power) + near for power in range(61) for near in (-1, 0, 1)})
    rows = run("io/size_histogram", reads(sizes))
    assert sum(row["reads"] for row in rows) == len(sizes)
    for row in rows:
        low, high = row["size_from"], row["size_to"]
        inside = [size for size in sizes if low <= size <= high]
        assert row["reads"] == len(inside)
        assert row["read_bytes"] == sum(inside)
        assert (low, high) in [(0, 0), (1, 1)] or (high.bit_count() == 1 and low == high // 2 + 1)


def test_without_durations_times_are_unknown_and_the_rest_is_there(run) -> None:
    [row] = run("io/summary", reads([1, 2]))
    assert (row["calls"], row["ok"], row["bytes"]) == (2, 2, 3)
    assert row["time_ns"] is row["avg_ns"] is row["min_ns"] is row["max_ns"] is None


def test_a_call_that_never_returned_is_neither_ok_nor_an_error(run) -> None:
    [row] = run("io/summary", [{"call": "read", "path": "/a", "result": None}])
    assert (row["calls"], row["ok"], row["errors"]) == (1, 0, 0)


def test_files_for_one_call_together(run) -> None:
    calls = [*reads([4, 6], dur_ns=10), {"call": "close", "path": "/a", "dur_ns": 5}, {"call": "getpid"}]
    [read] = run("io/files", calls, {"call": "read"})
    assert (read["path"], read["call"], read["calls"], read["bytes"]) == ("/a", "read", 2, 10)


def test_files_together(run) -> None:
    calls = [*reads([4, 6], dur_ns=10), {"call": "close", "path": "/a", "dur_ns": 5}]
    [every] = run("io/files", calls, {"per_call": False})
    assert (every["call"], every["calls"], every["time_ns"]) == ("all", 3, 25)


COPIES = [
    {
        "call": "sendfile",
        "class": "copy",
        "path": "/in",
        "to_path": "/out",
        "transferred_bytes": 9,
        "dur_ns": 4,
    },
    # Within one file, from an unknown one, to none.
    {
        "call": "sendfile",
        "class": "copy",
        "path": "/in",
        "to_path": "/in",
        "transferred_bytes": 1,
        "dur_ns": 1,
    },
    {"call": "splice", "class": "copy", "path": None, "to_path": "/out", "transferred_bytes": 2, "dur_ns": 1},
    {"call": "tee", "class": "copy", "path": "/in", "transferred_bytes": 3, "dur_ns": 1},
]


def test_a_copy_counts_for_both_its_files_and_once_in_the_summary(run) -> None:
    rows = run("io/files", COPIES, {"per_call": False})
    assert {row["path"]: (row["calls"], row["bytes"], row["time_ns"]) for row in rows} == {
        "/in": (3, 13, 6),
        "/out": (2, 11, 5),
    }
    [sendfile, *_] = run("io/summary", COPIES, name="summary")
    assert (sendfile["call"], sendfile["calls"], sendfile["bytes"]) == ("sendfile", 2, 10)


def test_a_copy_has_a_place_in_both_its_files(run) -> None:
    places = {"offset_bytes": 4096, "to_offset_bytes": 0, "offset_uncertain": True}
    rows = run("io/offsets", [{**COPIES[0], **places}, *reads([5], offset_bytes=7, t=1)])
    assert [(row["path"], row["offset_bytes"], row["uncertain"]) for row in rows] == [
        ("/in", 4096, True),
        ("/out", 0, True),
        ("/a", 7, False),
    ]


def test_operations_of_libaio_are_no_calls(run) -> None:
    calls = [
        {"call": "io_submit", "result": 2, "dur_ns": 10},
        *reads([100, 200], call="aio_pread", **{"class": "read"}, via="libaio", dur_ns=1000),
    ]
    [process] = run("processes/tree", calls)
    assert (process["calls"], process["time_ns"], process["bytes"]) == (1, 10, 300)
    assert [row["class"] for row in run("io/calls_over_time", calls, name="time")] == ["other"]
    assert {row["call"] for row in run("io/summary", calls, name="summary")} == {"io_submit", "aio_pread"}


def test_mappings_of_a_file_are_counted_by_what_may_be_done(run) -> None:
    def mapping(protection: str, shared: bool, **more: Any) -> dict[str, Any]:
        return {"address": 1, "length_bytes": 4096, "protection": protection, "shared": shared, **more}

    both = "PROT_READ|PROT_WRITE"
    mappings = [
        mapping("PROT_READ", False, path="/lib"),
        mapping(both, False, path="/lib", pid=200, tid=201),
        mapping(both, False, path="/lib", pid=200, tid=202, length_bytes=8192),
        mapping(both, True),
    ]
    rows = run("processes/mappings", [], mappings=mappings)
    assert [tuple(row.values()) for row in rows] == [
        ("/lib", 3, 2, 16384, 8192, 0, 2, 0),
        (None, 1, 1, 4096, 4096, 1, 1, 1),
    ]


def test_the_place_of_a_call_is_outside_the_c_library(run) -> None:
    stacks = {
        0: [("/lib/libc.so.6", "write"), ("/lib/libz.so.1", "deflate"), ("/bin/a", "main")],
        1: [("/usr/lib/ld-linux-x86-64.so.2", "open"), ("/lib64/ld-2.17.so", "_start")],
        2: [
            (None, "unexpected_backtracing_error"),
            ("/lib/libc-2.31.so", "read"),
            ("/opt/libcurl.so.4", None),
        ],
        3: [("/lib/ld-musl-x86_64.so.1", "fsync"), ("/bin/ld.so-reader", "main")],
    }
    frames = [
        {"stack_id": stack, "frame": number, "object": object_, "function": function}
        for stack, places in stacks.items()
        for number, (object_, function) in enumerate(places)
    ]
    calls = [{"call": "c", "dur_ns": 9 - stack, "stack_id": stack} for stack in stacks] + [{"call": "none"}]
    rows = run("io/stacks", calls, stacks=frames)
    assert [(row["object"], row["function"]) for row in rows] == [
        ("/lib/libz.so.1", "deflate"),
        ("/usr/lib/ld-linux-x86-64.so.2", "open"),
        ("/opt/libcurl.so.4", None),
        ("/bin/ld.so-reader", "main"),
    ]


@pytest.mark.parametrize(
    ("interval", "steps"), [(1.0, [0.0, 2.0]), (0.25, [0.0, 0.25, 2.0]), (0.1, [0.0, 0.2, 0.3, 2.0])]
)
def test_steps_of_any_length_leave_gaps_out(run, interval: float, steps: list[float]) -> None:
    calls = [{"t": t, **call} for t, call in zip((0, 0.2, 0.3, 2.0), reads([1, 1, 1, 1]), strict=True)]
    rows = run("io/calls_over_time", calls, {"interval_s": interval})
    assert [row["from_s"] for row in rows] == steps
    assert sum(row["calls"] for row in rows) == 4


@pytest.mark.parametrize("analysis", ["io/bytes_over_time", "io/calls_over_time"])
def test_steps_may_be_tiny_or_huge_but_not_nothing(run, analysis: str) -> None:
    for number, interval_s in enumerate((1e-300, 1e300)):
        assert len(run(analysis, reads([5]), {"interval_s": interval_s}, name=f"rec{number}")) == 1
    for number, interval_s in enumerate((0, -1), 2):
        with pytest.raises(UserError, match="must be greater than 0"):
            run(analysis, reads([5]), {"interval_s": interval_s}, name=f"rec{number}")


def test_a_thread_id_that_is_used_again_is_another_life(run) -> None:
    life = {"pid": 7, "tid": 7, "depth": 0, "execs": 0, "calls": 1}
    lives = [
        {**life, "tree_order": 0, "start_ts_ns": STARTED_NS, "end_ts_ns": STARTED_NS + 1_000_000_000},
        {**life, "tree_order": 1, "start_ts_ns": STARTED_NS + 5_000_000_000, "exit_signal": "SIGKILL"},
    ]
    calls = [
        {"t": 0.5, "call": "write", "pid": 7, "tid": 7, "transferred_bytes": 10, "result": 10},
        {"t": 5.5, "call": "write", "pid": 7, "tid": 7, "transferred_bytes": 3, "result": 3},
    ]
    first, second = run("processes/tree", calls, processes=lives)
    assert (first["bytes"], second["bytes"]) == (10, 3)
    assert (first["exit"], second["exit"], second["end_s"]) == (None, "SIGKILL", None)


def test_a_filter_reaches_every_analysis_of_calls(run, library: Library) -> None:
    calls = reads([4], path="/keep") + reads([400], path="/drop")
    for id_ in ("io/summary", "io/sizes", "io/size_histogram", "io/calls_over_time", "io/bytes_over_time"):
        rows = run(id_, calls, filters=Filters(file="/keep"), name=id_.replace("/", "-"))
        assert sum(row.get("calls", row.get("reads")) for row in rows) == 1
