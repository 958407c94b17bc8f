"""Page faults on mapped files, against the program's own books: pages that it touched, and what getrusage counted meanwhile."""

from __future__ import annotations

import itertools
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from recorders import kernel_of, recorder_or_skip
from scenes import TOUCHED, build
from stated import stated

Query = Callable[[Path, str], list[tuple]]


@dataclass(frozen=True)
class Books:
    """What the program says of one way to touch pages."""

    pages: int
    resident: int
    minor: int
    major: int


def books_of(output: str) -> dict[str, Books]:
    """The program's lines, by way."""
    lines = [line.split() for line in output.splitlines() if line != "ready"]
    return {way: Books(*map(int, numbers)) for way, *numbers in lines}


@dataclass(frozen=True)
class Recorded:
    """A recording of the program, and its books."""

    rec: Path
    files: Path
    books: dict[str, Books]


@pytest.fixture(scope="module")
def recorded(scene: Callable[..., Path]) -> Recorded:
    """The program, having gone all its ways."""
    folder = scene("mapped_pages")
    states = stated(folder / "rec")["families"]
    assert {"family": "faults", "missing": None} in states
    return Recorded(folder / "rec", folder / "files", books_of((folder / "books").read_text()))


def faults_of(recorded: Recorded, query: Query, way: str, what: str) -> list[tuple]:
    """Columns over the faults on the file of a way."""
    path = recorded.files / way
    sql = f"SELECT {what} FROM file_faults JOIN paths USING (path_id) JOIN processes USING (task_id) WHERE path = '{path}'"
    return query(recorded.rec, sql)


def test_nothing_is_lost(recorded: Recorded, manifest: Callable) -> None:
    stated = manifest(recorded.rec)
    assert (stated["lost_events"], stated["issues"]) == (0, {})


@pytest.mark.parametrize("way", [*TOUCHED, "sequence"])
def test_faults_are_those_that_the_kernel_counted(recorded: Recorded, query: Query, way: str) -> None:
    books = recorded.books[way]
    what = "count(*) FILTER (NOT major), count(*) FILTER (major)"
    # The child touches one page before it counts.
    before = 1 if way == "child" else 0
    [(minor, major)] = faults_of(recorded, query, way, what)
    assert minor + major == books.minor + books.major + before
    assert major - books.major in (0, before)


@pytest.mark.parametrize("way", TOUCHED)
def test_pages_are_those_that_were_touched(recorded: Recorded, query: Query, way: str) -> None:
    books = recorded.books[way]
    if books.resident:
        pytest.skip(
            f"{books.resident} pages were in memory already, as on tmpfs: the kernel maps those unasked"
        )
    pages = books.pages + (1 if way == "child" else 0)
    offsets = faults_of(recorded, query, way, "DISTINCT offset_bytes")
    assert sorted(offset for (offset,) in offsets) == [4096 * page for page in range(pages)]


def test_random_access_keeps_the_order_of_the_program(recorded: Recorded, query: Query) -> None:
    """The order is made as the program makes it."""
    if recorded.books["random"].resident:
        pytest.skip("pages were in memory already")
    order, random = list(range(16384)), 12345
    for last in range(16383, 0, -1):
        random = (random * 1664525 + 1013904223) % 2**32
        other = (random >> 8) % (last + 1)
        order[last], order[other] = order[other], order[last]
    rows = faults_of(recorded, query, "random", "offset_bytes, ts_ns, dur_ns")
    in_time = sorted(rows, key=lambda row: row[1])
    assert [offset // 4096 for offset, _, _ in in_time] == order
    # One thread: one fault ends before the next begins.
    assert all(
        start + duration <= following
        for (_, start, duration), (_, following, _) in itertools.pairwise(in_time)
    )


def test_a_sequence_is_read_in_order_and_mapped_around(recorded: Recorded, query: Query) -> None:
    """Only one page of a range that is mapped at once has a fault."""
    rows = faults_of(
        recorded, query, "sequence", "offset_bytes, fault_around_offset_bytes, fault_around_bytes, ts_ns"
    )
    rows.sort(key=lambda row: row[3])
    offsets = [row[0] for row in rows]
    assert offsets == sorted(set(offsets))
    assert len(offsets) < 16384
    for offset, around, length, _ in rows:
        assert around is None or around <= offset < around + length


def tells_pages(recorded: Recorded, query: Query) -> bool:
    """Whether the kernel that it was recorded on keeps count, CPU by CPU, of the pages that a process has mapped: from 6.2 on."""
    return kernel_of(recorded.rec, query) >= (6, 2)


# Not the threads, whose faults are at the same moments.
@pytest.mark.parametrize("way", ["random", "sequence", "shared_writes", "deleted", "child", "call"])
def test_pages_that_came_in_are_those_that_were_touched(recorded: Recorded, query: Query, way: str) -> None:
    """In sequence too, where few of them had a fault. A fault that went to another CPU does not say how many it brought in."""
    books = recorded.books[way]
    if books.resident:
        pytest.skip(f"{books.resident} pages were in memory already, and are mapped unasked")
    pages = books.pages + (1 if way == "child" else 0)
    what = "sum(mapped_bytes), count(*) FILTER (mapped_bytes IS NULL)"
    [(known, moved)] = faults_of(recorded, query, way, what)
    if not tells_pages(recorded, query):
        assert known is None
    elif moved == 0:
        assert known == 4096 * pages
    else:
        assert known < 4096 * pages


def test_of_faults_at_the_same_moment_nobody_says_too_much(recorded: Recorded, query: Query) -> None:
    """Each page is brought in once: what is known of four threads cannot be more than all of it."""
    [(known,)] = faults_of(recorded, query, "threads", "coalesce(sum(mapped_bytes), 0)")
    assert known <= 4096 * recorded.books["threads"].pages


def test_a_copy_brings_in_nothing(recorded: Recorded, query: Query) -> None:
    expected = 0 if tells_pages(recorded, query) else None
    assert faults_of(recorded, query, "private_writes", "max(mapped_bytes)") == [(expected,)]


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("random", {("read", True, False, False)}),
        ("shared_writes", {("write", True, False, False)}),
        ("reads_then_writes", {("read", True, False, False), ("write", True, True, False)}),
        ("private_writes", {("write", False, False, False)}),
        ("call", {("read", True, False, True)}),
    ],
)
def test_access_is_what_the_program_did(recorded: Recorded, query: Query, way: str, expected: set) -> None:
    assert set(faults_of(recorded, query, way, "access, shared, was_mapped, in_call")) == expected


def test_threads_and_children_are_told_apart(recorded: Recorded, query: Query) -> None:
    what = "count(DISTINCT tid), count(DISTINCT pid), min(tid = pid)"
    assert faults_of(recorded, query, "threads", what) == [(4, 1, False)]
    assert faults_of(recorded, query, "child", what) == [(1, 1, True)]
    pids = [faults_of(recorded, query, way, "DISTINCT pid") for way in ("random", "threads", "child")]
    assert pids[0] == pids[1] != pids[2]


def test_memory_that_is_no_file_has_no_rows(recorded: Recorded, query: Query) -> None:
    assert recorded.books["heap"].minor >= 256
    assert recorded.books["shared_memory"].minor >= 256
    named = query(recorded.rec, "SELECT DISTINCT path FROM file_faults LEFT JOIN paths USING (path_id)")
    assert all(path and path.startswith("/") and path != "/dev/zero" for (path,) in named)


def test_a_file_that_was_mapped_before_is_known(native: Path, tmp_path: Path, query: Query) -> None:
    recorder_or_skip(native, "kernel")
    build("mapped_pages", tmp_path)
    (tmp_path / "files").mkdir()
    words = [tmp_path / "programs" / "mapped_pages", tmp_path / "files", "when_told"]
    running = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert running.stdout.readline() == "ready\n"
    command = [
        native,
        "record",
        "--with",
        "kernel",
        "-p",
        str(running.pid),
        "--for",
        "2s",
        "-o",
        tmp_path / "rec",
    ]
    recorder = subprocess.Popen(command)
    # Its folder is made after the programs are attached.
    while recorder.poll() is None and not (tmp_path / "rec" / "spool").exists():
        time.sleep(0.01)
    output, _ = running.communicate("\n", timeout=600)
    assert recorder.wait(timeout=600) == 0
    books = books_of(output)["when_told"]
    sql = (
        "SELECT path, count(*) FILTER (NOT major), count(*) FILTER (major)"
        f" FROM file_faults JOIN paths USING (path_id) WHERE path LIKE '{tmp_path}/%' GROUP BY path"
    )
    expected = [(f"{tmp_path}/files/when_told", books.minor, books.major)]
    assert query(tmp_path / "rec", sql) == expected


def test_it_can_be_left_out(native: Path, tmp_path: Path, manifest: Callable) -> None:
    recorder = recorder_or_skip(native, "kernel")
    recorder.record(tmp_path / "rec", "true", recorder_options=("--what", "io"))
    stated = manifest(tmp_path / "rec")
    assert "file_faults" not in stated["tables"]
    assert {"family": "faults", "missing": {"code": "capture/not_requested"}} in stated["families"]


def test_who_waits_in_a_major_fault_waits_for_the_disk(recorded: Recorded, query: Query) -> None:
    """The scheduler's times outside of calls that are for a disk lie in major faults on the same file."""
    within = (
        "EXISTS (SELECT 1 FROM file_faults AS f WHERE f.task_id = r.task_id AND f.path_id = r.path_id AND f.major "
        "AND f.ts_ns <= r.ts_ns AND r.ts_ns + r.dur_ns <= f.ts_ns + f.dur_ns)"
    )
    [(number, faults)] = query(
        recorded.rec,
        f"SELECT count(*), count(*) FILTER (WHERE {within}) FROM run_states AS r WHERE cause = 'disk' AND call IS NULL",
    )
    assert number == faults > 0
