"""Calls that move many messages: each row has the bytes that the program itself counted, or says that they are not known."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from recorders import recorder_or_skip
from slow_reader import read
from test_totals import totals

SOURCE = Path(__file__).parents[3] / "testdata" / "programs" / "messages.c"
Query = Callable[[Path, str], list[tuple]]

ROWS = """SELECT call, class, coalesce(value, transferred_bytes, -1), coalesce(transferred_bytes, -1) FROM calls
    WHERE call IN ('sendmmsg', 'recvmmsg') ORDER BY ts_ns"""
CLASSES = {"sendmmsg": "write", "recvmmsg": "read"}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("messages") / "messages"
    subprocess.run(["gcc", "-O1", "-Wall", "-Werror", "-o", out, SOURCE], check=True)
    return out


def known(output: str) -> list[tuple[str, str, int, int]]:
    """What the program printed, as rows."""
    lines = (line.split() for line in output.splitlines())
    return [(call, CLASSES[call], int(result), int(size)) for call, result, size in lines]


def test_kernel_rows_are_what_the_program_counted(
    program: Path, native: Path, tmp_path: Path, query: Query, manifest: Callable
) -> None:
    done = recorder_or_skip(native, "kernel").record(tmp_path / "rec", program)
    rows = known(done.stdout)
    assert len(rows) == 12
    assert ("sendmmsg", "write", 200, 200 * 20 + 199 * 100) in rows
    assert query(tmp_path / "rec", ROWS) == rows
    assert "unknown_bytes" not in manifest(tmp_path / "rec")["issues"]


@pytest.mark.parametrize(("most", "cut"), [(32, 2), (256, 0)])
def test_rows_of_a_log_are_what_the_program_counted(
    most: int, cut: int, program: Path, import_log: Callable, tmp_path: Path, query: Query, manifest: Callable
) -> None:
    """strace prints as many messages as it prints bytes of a string: where it printed fewer, their bytes are not known."""
    log = tmp_path / "log"
    command = ["strace", "-f", "-ttt", "-T", "-s", str(most), "-o", log, program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    recording = import_log(log)
    expected = [row if row[2] <= most else (*row[:3], -1) for row in known(done.stdout)]
    assert query(recording, ROWS) == expected
    assert manifest(recording)["issues"].get("unknown_bytes", 0) == cut
    assert totals(query, recording) == read(log).calls
