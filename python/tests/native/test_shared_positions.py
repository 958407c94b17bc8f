"""Threads that move one file position at the same time: with any recorder, positions that cannot be determined are marked."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from recorders import Recorder

Query = Callable[[Path, str], list[tuple]]

# The kernel recorder compares a call with no more than 256 that ended within it.
MOST_CALLS = 240
# Bytes of a call, so many that it takes some time (splice: what a pipe holds), how a thread makes them, and what comes first.
MOVES = {
    "sendfile": (1 << 20, "os.sendfile(null, file, None, CHUNK)", "pass"),
    "preadv2": (1 << 20, "os.preadv(file, [bytearray(CHUNK)], -1, os.RWF_HIPRI)", "pass"),
    "splice": (
        64 << 10,
        "os.splice(file, pipe[1], CHUNK) and os.splice(pipe[0], null, CHUNK)",
        # The first thread waits within its call, as its pipe is full, until the other has made one.
        """if number == 0:
        os.write(pipe[1], bytes(CHUNK))
        together.wait()
    else:
        together.wait()
        time.sleep(0.1)
        os.splice(file, pipe[1], CHUNK)
        os.read(pipes[0][0], CHUNK)
        os.read(pipe[0], CHUNK)""",
    ),
}
PROGRAM = """
import contextlib, os, sys, threading, time
with contextlib.suppress(OSError):
    # Before all others, so that both threads run at the same time on a busy machine.
    os.nice(-20)
CHUNK = {chunk}
file, null, = os.open(sys.argv[1], os.O_RDONLY), os.open("/dev/null", os.O_WRONLY)
together = threading.Barrier(2)
pipes = [os.pipe(), os.pipe()]
def move(number):
    pipe = pipes[number]
    together.wait()
    {first}
    while {move}:
        pass
threads = [threading.Thread(target=move, args=[number]) for number in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


@pytest.mark.parametrize("call", MOVES)
def test_moves_of_one_position_that_overlap_are_marked_and_the_others_are_right(
    recorder: Recorder, tmp_path: Path, query: Query, call: str
) -> None:
    chunk, move, first = MOVES[call]
    data = tmp_path / "data"
    data.write_bytes(b"")
    os.truncate(data, chunk * MOST_CALLS)
    sql = (
        "SELECT offset_bytes, transferred_bytes, offset_uncertain FROM calls JOIN paths USING (path_id)"
        f" WHERE call = '{call}' AND path = '{data}' AND transferred_bytes > 0"
    )
    # On a busy machine the two threads may hardly run at the same time: then once more. What is certain must be right each time.
    for attempt in range(20):
        recording = tmp_path / f"rec{attempt}"
        done = recorder.record(
            recording, sys.executable, "-c", PROGRAM.format(chunk=chunk, move=move, first=first), str(data)
        )
        assert done.returncode == 0, done.stderr
        found = query(recording, sql)
        # The kernel locks the position for preadv2 only: else calls that overlap may move the same bytes.
        assert sum(moved for _, moved, _ in found) >= chunk * MOST_CALLS
        certain = sorted((offset, moved) for offset, moved, uncertain in found if not uncertain)
        assert all(start + moved <= after for (start, moved), (after, _) in itertools.pairwise(certain))
        if len(certain) < len(found):
            return
    pytest.fail("the threads were never in each other's way")


def test_places_that_calls_name_are_certain(recorder: Recorder, tmp_path: Path, query: Query) -> None:
    data = tmp_path / "data"
    data.write_bytes(bytes(256 * 4096))
    program = PROGRAM.format(
        chunk=4096,
        first="pass",
        move="not all(os.preadv(file, [bytearray(CHUNK)], n * CHUNK, os.RWF_HIPRI) for n in range(256))"
        " or not all(os.sendfile(null, file, n * CHUNK, CHUNK) for n in range(256))",
    )
    done = recorder.record(tmp_path / "rec", sys.executable, "-c", program, str(data))
    assert done.returncode == 0, done.stderr
    sql = (
        "SELECT call, count(*), count(*) FILTER (offset_uncertain) FROM calls JOIN paths USING (path_id)"
        f" WHERE path = '{data}' AND call IN ('preadv2', 'sendfile') GROUP BY call ORDER BY call"
    )
    assert query(tmp_path / "rec", sql) == [("preadv2", 512, 0), ("sendfile", 512, 0)]
