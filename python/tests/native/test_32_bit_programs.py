"""Calls of 32-bit programs: the kernel recorder has the same rows as strace, under the names of the 64-bit calls."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from recorders import recorder_or_skip

SOURCE = Path(__file__).parents[3] / "testdata" / "programs" / "compat32.c"
Query = Callable[[Path, str], list[tuple]]

# What strace calls them.
SAME = {
    "_llseek": "lseek",
    "ftruncate64": "ftruncate",
    "stat64": "stat",
    "fstat64": "fstat",
    "sendfile64": "sendfile",
    "mmap2": "mmap",
    "nice": "compat_syscall",
    "getuid32": "getuid",
}
ROWS = """SELECT call, regexp_replace(path, '^(socket):.*', '\\1'), fd, errno, requested_bytes, transferred_bytes, offset_bytes
    FROM calls LEFT JOIN paths USING (path_id) ORDER BY ts_ns"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, where the kernel runs it."""
    out = tmp_path_factory.mktemp("compat") / "compat32"
    made = subprocess.run(
        ["gcc", "-m32", "-nostdlib", "-static", "-O1", "-fno-stack-protector", "-fno-pie", "-o", out, SOURCE],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"no 32-bit program can be made here: {made.stderr.splitlines()[0]}")
    try:
        subprocess.run([out], cwd=out.parent, check=True)
    except OSError as error:
        pytest.skip(f"this kernel runs no 32-bit programs: {error}")
    return out


def test_rows_are_those_of_strace(program: Path, native: Path, tmp_path: Path, query: Query) -> None:
    rows = {}
    for name in ("kernel", "strace"):
        folder = tmp_path / name
        done = recorder_or_skip(native, name).record(folder, program, cwd=program.parent)
        assert (done.returncode, done.stderr) == (0, "")
        rows[name] = [(SAME.get(call, call), *row) for call, *row in query(folder, ROWS)]
    assert rows["kernel"] == rows["strace"]
    assert len(rows["kernel"]) > 30


def test_nothing_is_lost_and_sums_are_those_of_the_calls(
    program: Path, native: Path, tmp_path: Path, query: Query, manifest: Callable
) -> None:
    kernel = recorder_or_skip(native, "kernel")
    what = ("--what", "io,sched,syscalls")
    kernel.record(tmp_path / "rec", program, recorder_options=what, cwd=program.parent)
    stated = manifest(tmp_path / "rec")
    assert stated["lost_events"] == 0
    one_by_one = query(
        tmp_path / "rec", "SELECT call, count(*) FROM calls WHERE call <> 'exit_group' GROUP BY 1 ORDER BY 1"
    )
    summed = query(tmp_path / "rec", "SELECT call, sum(number) FROM syscall_times GROUP BY 1 ORDER BY 1")
    assert [(call, int(count)) for call, count in summed] == one_by_one
