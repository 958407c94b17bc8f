"""Recordings against the kernel's own books: /proc/PID/io, and what dd says that it copied."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from recorders import RECORDERS, Recorder
from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Recording, connect

# What the kernel counts (fs/read_write.c): of these calls rchar or wchar has the bytes, syscr or syscw the number. Calls of sockets of their
# own (send, recv), splice, tee, vmsplice, mappings and io by libaio are in none of them.
READS = ("read", "pread64", "readv", "preadv", "preadv2")
WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2")
BOTH = ("sendfile", "copy_file_range")
# Calls of one buffer are counted where they reach the file, those of several always.
NOT_REACHED = (
    "errno = 'EBADF' AND call IN ('read', 'write', 'pread64', 'pwrite64', 'sendfile', 'copy_file_range')"
)


def rows(recording: Path, sql: str) -> list[tuple]:
    """Rows as every analysis sees them."""
    return connect(Recording.open(recording), Library(), ["calls"]).execute(sql).fetchall()


def counted(calls: tuple[str, ...], start: int, end: int) -> str:
    """Bytes and number of these calls between two times."""
    return (
        "SELECT coalesce(sum(transferred_bytes), 0)::BIGINT, count(*) FROM calls"
        f" WHERE call IN {calls} AND ts_ns BETWEEN {start} AND {end} AND NOT coalesce({NOT_REACHED}, FALSE)"
    )


@pytest.mark.parametrize("recorder_name", RECORDERS)
def test_bytes_and_calls_are_those_that_the_kernel_counted(
    scene: Callable[..., Path], recorder_name: str
) -> None:
    folder = scene("io_counters", recorder_name)
    read_bytes, written_bytes, reads, writes = map(int, (folder / "counted").read_text().split())
    assert read_bytes > 500_000
    (start,), (end,) = rows(
        folder / "rec", "SELECT ts_ns FROM calls WHERE call = 'getpriority' ORDER BY ts_ns"
    )
    # The last read of the counters comes behind the second mark: it does not count itself.
    assert rows(folder / "rec", counted((*READS, *BOTH), start, end)) == [(read_bytes, reads)]
    assert rows(folder / "rec", counted((*WRITES, *BOTH), start, end)) == [(written_bytes, writes)]


@pytest.mark.parametrize("block", [512, 65536])
def test_bytes_are_those_that_dd_copied(recorder: Recorder, tmp_path: Path, block: int) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(bytes(1_000_000))
    done = recorder.record(tmp_path / "rec", "dd", f"if={source}", f"of={target}", f"bs={block}")
    copied = int(re.search(r"^(\d+) bytes", done.stderr, re.MULTILINE).group(1))
    assert copied == 1_000_000
    sql = f"SELECT call, path, sum(transferred_bytes)::BIGINT, count(*) FROM calls WHERE path IN ('{source}', '{target}') AND class IN ('read', 'write') GROUP BY ALL ORDER BY 1"
    blocks = -(-copied // block)
    assert rows(tmp_path / "rec", sql) == [
        ("read", str(source), copied, blocks + 1),
        ("write", str(target), copied, blocks),
    ]


def test_what_the_kernel_counted_of_each_process_is_what_its_calls_moved(scene: Callable[..., Path]) -> None:
    folder = scene("children")
    with Session(Recording.open(folder / "rec")) as session:
        result = session.run(session.library.analysis("processes/accounting"))
        names = [column.name for column in result.columns]
        children = [dict(zip(names, row, strict=True)) for row in result.rows()]
    children = sorted(
        (child for child in children if child["recorded_write_bytes"] > 90_000),
        key=lambda child: child["recorded_write_bytes"],
    )
    assert [child["recorded_write_bytes"] // 100_000 for child in children] == [1, 2, 3, 4, 5]
    for child, cpu_s in zip(children, (folder / "cpu_s").read_text().split(), strict=True):
        assert child["rchar_bytes"] == child["recorded_read_bytes"]
        assert child["wchar_bytes"] == child["recorded_write_bytes"]
        assert child["minor_faults"] > 10
        # What the program was told some moments before its end, in ticks of 10 ms.
        assert float(cpu_s) - 0.02 <= (child["user_ns"] + child["system_ns"]) / 1e9 <= float(cpu_s) + 0.1
