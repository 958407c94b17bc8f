"""Every call on files, from threads, forked children and a program run again: each row is what the program itself knows of the call."""

from __future__ import annotations

import functools
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from file_calls import COLUMNS, Call, noted, recorded
from recorders import RECORDERS, Recorder
from scenes import INPUT_AT
from sysdock.library import Library
from sysdock.recording import Recording, connect


@dataclass(frozen=True)
class Difference:
    """Where a recorder cannot say what the program knows, what it says instead, and why."""

    reason: str
    column: str
    when: Callable[[Call], bool]
    instead: Callable[[Call], object] = lambda _: None

    def explains(self, known: Call, found: Call, column: str) -> bool:
        """Whether this is the reason why a column of a call differs."""
        return column == self.column and self.when(known) and getattr(found, column) == self.instead(known)


DIFFERENCES = {
    "strace": [
        Difference(
            "strace -s 128 prints the first 128 parts of a vector",
            "requested_bytes",
            lambda known: known.call == "readv" and known.requested_bytes == 400,
        ),
        Difference(
            "a log does not tell where a descriptor stands that was open before",
            "offset_bytes",
            lambda known: known.call == "read" and known.fd == 0 and known.offset_bytes == INPUT_AT,
        ),
        Difference(
            "a log names the file of a descriptor that came with a message, not the open file whose position it shares",
            "offset_bytes",
            lambda known: (
                known.call == "read" and known.offset_bytes == 11 and str(known.path).endswith("/passed")
            ),
        ),
    ],
    "kernel": [],
}


@dataclass(frozen=True)
class Run:
    """A recorded run of the program."""

    recorder: str
    recording: Path
    known: dict[int, list[Call]]
    found: dict[int, list[Call]]
    # Parts of paths that are others in each run, and words for them.
    own: dict[str, str]

    def pairs(self) -> Iterator[tuple[Call, Call]]:
        """What the program knows of each call, and what was recorded."""
        for tid, calls in self.known.items():
            yield from zip(calls, self.found[tid], strict=True)


@pytest.fixture(scope="module")
def run_by(scene: Callable[..., Path]) -> Callable[[str], Run]:
    """The program as a recorder saw it."""

    @functools.cache
    def run_once(name: str) -> Run:
        folder = scene("every_file_call", name)
        own = {(folder / "shared").read_text(): "SHARED", str(folder): "FOLDER"}
        return Run(name, folder / "rec", noted(folder / "notes"), recorded(folder / "rec"), own)

    return run_once


@pytest.fixture(scope="module", params=RECORDERS)
def run(request: pytest.FixtureRequest, run_by: Callable[[str], Run]) -> Run:
    """The program as each recorder saw it."""
    return run_by(request.param)


def test_every_call_of_every_thread_is_there_in_its_order_and_no_other(run: Run) -> None:
    assert {tid: [call.call for call in calls] for tid, calls in run.found.items()} == {
        tid: [call.call for call in calls] for tid, calls in run.known.items()
    }
    assert len(run.known) == 8  # the first thread, four more, three children
    assert len({call.call for calls in run.known.values() for call in calls}) > 100


@pytest.mark.parametrize("column", COLUMNS)
def test_every_call_is_what_the_program_knows_of_it(run: Run, column: str) -> None:
    wrong = [
        f"{known}\n    but {column}={getattr(found, column)!r}"
        for known, found in run.pairs()
        if column in known.differing(found)
        and not any(difference.explains(known, found, column) for difference in DIFFERENCES[run.recorder])
    ]
    assert not wrong, f"{len(wrong)} calls, such as\n" + "\n".join(wrong[:: max(1, len(wrong) // 20)])


def test_every_explained_difference_is_seen(run: Run) -> None:
    """What was fixed is no difference any more."""
    for difference in DIFFERENCES[run.recorder]:
        assert any(
            difference.explains(known, found, column)
            for known, found in run.pairs()
            for column in known.differing(found)
        ), difference.reason


def test_nothing_is_lost_and_nothing_is_uncertain(run: Run, manifest: Callable[[Path], dict]) -> None:
    stated = manifest(run.recording)
    assert (stated["complete"], stated["lost_events"], stated["issues"]) == (True, 0, {})
    assert rows(run, "SELECT count(*) FROM calls WHERE offset_uncertain") == [(0,)]


def test_threads_and_children_stand_below_the_one_that_made_them(run: Run) -> None:
    first = next(tid for tid, calls in run.known.items() if any(call.fd == 0 for call in calls))
    made = f"CASE WHEN pid = tid THEN ppid ELSE pid END = {first}"
    sql = f"""
        WITH own AS (SELECT * FROM processes WHERE tid IN {(*run.known,)})
        SELECT pid = tid, coalesce({made}, FALSE), depth - (SELECT min(depth) FROM own), execs, exit_code, count(*)
        FROM own GROUP BY ALL ORDER BY ALL
    """
    assert rows(run, sql, "processes") == [
        (False, True, 1, 0, 0, 4),
        (True, False, 0, 1, 0, 1),
        (True, True, 1, 0, 0, 2),
        (True, True, 1, 1, 0, 1),
    ]


def test_a_file_that_is_seen_in_two_places_is_told_by_the_one_where_it_was_opened(
    recorder: Recorder, tmp_path: Path
) -> None:
    """A bind mount: both names are of one file."""
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "one" / "file").write_text("x")
    mount = f"mount --bind {tmp_path}/one {tmp_path}/other"
    if subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    files = [str(tmp_path / place / "file") for place in ("one", "other", "one")]
    script = f"{mount}; for file in {' '.join(files)}; do read line < $file; done"
    done = recorder.record(tmp_path / "rec", "unshare", "-m", "sh", "-c", script)
    assert (done.returncode, done.stderr) in [(0, ""), (1, "")]
    sql = (
        "SELECT path FROM calls WHERE call = 'openat' AND path LIKE '%/file' AND errno IS NULL ORDER BY ts_ns"
    )
    found = connect(Recording.open(tmp_path / "rec"), Library(), ["calls"]).execute(sql).fetchall()
    assert [path for (path,) in found] == files


def rows(run: Run, sql: str, table: str = "calls") -> list[tuple]:
    """Rows as every analysis sees them."""
    return connect(Recording.open(run.recording), Library(), [table]).execute(sql).fetchall()


# Both recorders of runs of the same program, with the calls of the C library outside of what the program notes

# What no two runs have in common, by SQL on their rows, and why.
BY_CHANCE = {
    "call = 'futex'": "whether a thread must wait for another one depends on which is faster",
    "call IN ('mmap', 'munmap', 'madvise') AND class = 'memory'": "stacks and arenas of threads that end are given to others, or freed",
    "call = 'read' AND path LIKE '/proc/%'": "the numbers in /proc/self/status have more digits, or fewer",
    "call = 'write' AND path LIKE '%/notes'": "so have those in the notes",
}


def whole(run: Run, columns: str, tail: str) -> Counter:
    """Rows of all calls, with what is different in each run replaced by words."""
    found = Counter()
    chance = " OR ".join(f"coalesce({sql}, FALSE)" for sql in BY_CHANCE)
    for *values, count in rows(run, f"SELECT {columns}, {tail} FROM calls WHERE NOT ({chance}) GROUP BY ALL"):
        found[tuple(same_words(run, value) for value in values)] += count
    return found


def same_words(run: Run, value: object) -> object:
    """A path without numbers of inodes and processes and without the test's own folders."""
    if not isinstance(value, str):
        return value
    for own, word in run.own.items():
        value = value.replace(own, word)
    return re.sub(r"(?<=:\[)\d+(?=\]$)|(?<=/#)\d+$|(?<=^/proc/)\d+", "N", value)


@pytest.fixture(scope="module")
def both(run_by: Callable[[str], Run]) -> tuple[Run, Run]:
    """The program as strace saw it, and as the kernel did."""
    return run_by("strace"), run_by("kernel")


@pytest.mark.parametrize(
    ("columns", "tail"),
    [
        ("call, class, errno", "count(*)"),
        ("call, open_flags", "count(*)"),
        ("call", "coalesce(sum(transferred_bytes), 0)::BIGINT"),
        ("call, path, kind, to_path", "count(*)"),
    ],
    ids=["errors", "flags", "bytes", "paths"],
)
def test_both_recorders_say_the_same_of_the_same_program(
    both: tuple[Run, Run], columns: str, tail: str
) -> None:
    strace, kernel = (whole(run, columns, tail) for run in both)
    assert sum(kernel.values()) > 8000
    different = {key: (strace[key], kernel[key]) for key in strace | kernel if strace[key] != kernel[key]}
    assert different == {}
