"""Sums of calls that the recorder adds up are those that its SELECT counts from the calls."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Filters, Recording
from sysdock.recording.writing import stated_part

LOGS = Path(__file__).resolve().parents[3] / "testdata"
KEY = ("path_id", "call", "class", "errno", "via", "open_flags")
# How several rows of the same object, name and error become one.
LEAST = ("shortest_ns", "smallest_bytes", "first_ns", "first_task_id")
MOST = ("longest_ns", "largest_bytes", "last_ns", "last_task_id")
# More than are held in memory at a time, and few enough calls for each that they are not worth it.
MANY = 140_000


def imported(native: Path, folder: Path, *logs: Path) -> Path:
    subprocess.run([native, "import", "-o", folder, "--", *logs], check=True, capture_output=True)
    return folder


def differences(recording: Path, library: Library) -> tuple[int, list[tuple]]:
    """How many sums there are, and those that are not what the calls give, of either side."""
    table = library.table("object_use")
    others = [column.name for column in table.columns if column.name not in KEY]
    one = {name: f"{'min' if name in LEAST else 'max' if name in MOST else 'sum'}({name})" for name in others}
    summed = ", ".join([*KEY, *(f"CAST({one[name]} AS BIGINT) AS {name}" for name in others)])
    parts = [str(part) for part in Recording.open(recording).parts("object_use")]
    stored = f"SELECT {summed} FROM read_parquet({parts}) GROUP BY ALL"
    with Session(Recording.open(recording), library) as session:
        session.views.make(["calls"])
        counted = f"SELECT {', '.join([*KEY, *others])} FROM ({table.sql})"
        count = session.views.connection.execute(f"SELECT count(*) FROM ({stored})").fetchone()[0]
        either = f"({stored} EXCEPT ALL {counted}) UNION ALL ({counted} EXCEPT ALL {stored})"
        return count, session.views.connection.execute(either).fetchall()


@pytest.mark.parametrize(
    "log",
    [
        "strace/threads.ttt_T_y.strace",
        "strace/odd_files.yy_C.strace",
        "strace/shell.f.strace",
        "strace/shell.r_T.strace",
    ],
)
def test_stored_sums_are_those_of_the_calls(native: Path, tmp_path: Path, library: Library, log: str) -> None:
    count, different = differences(imported(native, tmp_path / "rec", LOGS / log), library)
    assert count > 20
    assert different == []


@pytest.mark.parametrize("name", ["every_file_call", "libaio_16_1", "io_uring_0"])
def test_those_of_kernel_events_too(scene: Callable[..., Path], library: Library, name: str) -> None:
    count, different = differences(scene(name) / "rec", library)
    assert count > 5
    assert different == []


def test_filters_count_anew(native: Path, tmp_path: Path, library: Library) -> None:
    recording = Recording.open(imported(native, tmp_path / "rec", LOGS / "strace" / "shell.f.strace"))
    with (
        Session(recording, library) as everything,
        Session(recording, library, Filters(call="read")) as reads,
    ):
        [(calls,)] = everything.fetch("SELECT sum(calls) FROM object_use")
        [(reads_of_all,)] = everything.fetch("SELECT sum(calls) FROM object_use WHERE call = 'read'")
        assert calls == recording.rows("calls")
        assert reads.fetch("SELECT sum(calls) FROM object_use") == [(reads_of_all,)]
        assert 0 < reads_of_all < calls
        assert everything.views._counted == set()
        assert reads.views._counted == {"object_use"}


def test_sums_that_are_not_worth_it_are_counted_when_asked_for(
    native: Path, tmp_path: Path, library: Library
) -> None:
    log = tmp_path / "log"
    line = '1 {time}.000000 openat(AT_FDCWD, "/f{number}", O_RDONLY) = 3</f{number}> <0.000005>\n'
    log.write_text("".join(line.format(time=1_700_000_000 + number, number=number) for number in range(MANY)))
    recording = Recording.open(imported(native, tmp_path / "rec", log))
    stored = recording.rows("object_use") if "object_use" in recording.tables else 0
    assert stored < recording.rows("calls") == MANY
    with Session(recording, library) as session:
        [row] = session.run("io/summary").dicts()
        assert (row["call"], row["calls"], row["ok"], row["time_ns"]) == ("openat", MANY, MANY, 5_000 * MANY)


def test_a_table_that_lacks_some_of_the_calls_is_not_believed(
    native: Path, tmp_path: Path, library: Library
) -> None:
    """As of two captures of which one did not add up, or a recorder that was killed: one call is in no sum."""
    recording = imported(native, tmp_path / "rec", LOGS / "strace" / "shell.f.strace")
    manifest = recording / "recording.json"
    content = json.loads(manifest.read_text())
    rows = content["tables"]["calls"]["rows"]
    [part] = content["tables"]["object_use"]["parts"]
    file = recording / part["file"]
    less = file.with_name("less")
    duckdb.sql(
        f"COPY (SELECT * FROM '{file}' ORDER BY calls LIMIT {part['rows'] - 1}) TO '{less}' (FORMAT parquet)"
    )
    less.replace(file)
    content["tables"]["object_use"] = {
        "rows": part["rows"] - 1,
        "parts": [stated_part(recording, file, part["rows"] - 1)],
    }
    manifest.write_text(json.dumps(content))
    with Session(Recording.open(recording), library) as session:
        assert session.fetch("SELECT sum(calls) FROM object_use") == [(rows,)]
        assert session.views._counted == {"object_use"}
