"""`sysdock bench diskio` from end to end, without a server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import fork_server
import pytest
from sysdock.analysis import Session
from sysdock.diskio import measuring
from sysdock.diskio.device import plan
from sysdock.diskio.transactions import Settings
from sysdock.library import Library
from sysdock.recording import Recording


def diskio(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return fork_server.run("bench", "diskio", *words, **more)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A recording, and what was printed when it was made."""
    folder = tmp_path_factory.mktemp("diskio")
    (folder / "data").mkdir()
    words = ["--for", "100ms", "--clients", "1,8", "--scale", "5", "--cpu-us", "500", "--format", "json"]
    done = diskio(str(folder / "data"), "-o", str(folder / "rec"), *words, "--lang", "en")
    assert done.returncode == 0, done.stderr
    assert os.listdir(folder / "data") == []
    return folder / "rec", json.loads(done.stdout)


def test_it_measures_predicts_and_says_why(kept: tuple[Path, dict[str, Any]]) -> None:
    _, said = kept
    rows = {(row["workload"], row["clients"]): row for row in said["predictions"]}
    assert list(rows) == [(name, count) for name in ("simple_update", "tpcb", "select") for count in (1, 8)]
    one = rows["simple_update", 1]
    # A flush and half a millisecond of computing.
    assert one["predicted_tps"] == pytest.approx(1 / (one["flush_ns"] / 1e9 + 0.0005), rel=0.15)
    # Each commit needs a flush. When the log writer wakes, it may flush the first records of a transaction: of 3,000 commits, once for each
    # of its delays, and once more at the edges.
    flushes_of_writer = 1 / (Settings.wal_writer_delay_s * one["predicted_tps"])
    assert 1 / (1 + flushes_of_writer + 1 / 3000) <= one["commits_per_flush"] <= 1
    assert rows["simple_update", 8]["predicted_tps"] > one["predicted_tps"]
    assert rows["select", 1]["predicted_tps"] == pytest.approx(2000, rel=0.05)
    assert said["explanation"][0].startswith("One commit is one flush of the log")
    assert [row["query"] for row in said["queries"]] == ["scan", "fetch", "sort", "vacuum"]


def test_the_recording_has_what_was_said(kept: tuple[Path, dict[str, Any]]) -> None:
    folder, said = kept
    recording = Recording.open(folder)
    assert (recording.rows("diskio_predictions"), recording.rows("diskio_queries")) == (6, 4)
    query = "SELECT workload, clients, predicted_tps, measured_tps FROM diskio_predictions"
    rows = json.loads(fork_server.run("query", folder, query, "--format", "json", check=True).stdout)
    names = ("workload", "clients", "predicted_tps")
    assert [[row[name] for name in names] for row in rows] == [
        [row[name] for name in names] for row in said["predictions"]
    ]
    assert {row["measured_tps"] for row in rows} == {None}


def test_an_earlier_measurement_gives_the_same(kept: tuple[Path, dict[str, Any]]) -> None:
    folder, said = kept
    words = ["--clients", "1,8", "--scale", "5", "--cpu-us", "500", "--format", "json"]
    again = json.loads(diskio("--measured", str(folder), *words).stdout)
    names = ("workload", "clients", "predicted_tps", "steady_tps", "limited_by")
    assert [[row[name] for name in names] for row in again["predictions"]] == [
        [row[name] for name in names] for row in said["predictions"]
    ]


PGBENCH = """pgbench (15.13)
starting vacuum...end.
transaction type: <builtin: simple update>
scaling factor: 5
query mode: simple
number of clients: 8
number of threads: 2
latency average = 2.000 ms
tps = 4000.000000 (without initial connection time)
"""


def test_it_is_compared_with_a_real_server(kept: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "new").write_text(PGBENCH + PGBENCH.replace("4000.0", "3000.0"))
    # As versions before 14 have it: with and without the time of making connections.
    old = PGBENCH.replace("simple update", "select only").replace("clients: 8", "clients: 1")
    before = "tps = 100.000000 (including connections establishing)\ntps = "
    (tmp_path / "old").write_text(old.replace("tps = ", before))
    given = ["--pgbench", str(tmp_path / "new"), "--pgbench", str(tmp_path / "old")]
    words = ["--measured", str(kept[0]), "--clients", "1,8", "--scale", "5", *given]
    said = json.loads(diskio(*words, "--format", "json").stdout)
    tps = {(row["workload"], row["clients"]): row["measured_tps"] for row in said["predictions"]}
    assert (tps["simple_update", 8], tps["select", 1]) == (3500, 4000)
    assert set(tps.values()) == {3500, 4000, None}
    [row] = [row for row in said["predictions"] if row["workload"] == "select" and row["clients"] == 1]
    shown = diskio(*words, "--lang", "en").stdout
    assert "measured tps" in shown
    assert f"{row['predicted_tps'] / 4000 - 1:+.0%}" in shown
    assert "実測 tps" in diskio(*words, "--lang", "ja").stdout
    left_out = diskio(*words[:2], "--clients", "1", *words[4:])
    assert "pgbench ran simple_update with 8 clients, which is not predicted here" in left_out.stderr


def test_a_kept_prediction_has_what_the_server_did(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "log").write_text(PGBENCH)
    words = ["--for", "100ms", "--clients", "8", "--scale", "5", "--workload", "simple_update", "--no-reads"]
    done = diskio(
        str(tmp_path / "data"), "-o", str(tmp_path / "rec"), *words, "--pgbench", str(tmp_path / "log")
    )
    assert done.returncode == 0, done.stderr
    with Session(Recording.open(tmp_path / "rec")) as session:
        [row] = session.dicts("SELECT predicted_tps, measured_tps FROM diskio_predictions")
        [answer] = session.run(session.library.analysis("load/diskio")).rows()
    assert row["measured_tps"] == 4000
    assert round(row["predicted_tps"] / 4000 - 1, 3) in answer


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no result of pgbench"),
        (PGBENCH.partition("tps")[0], "no result of pgbench"),
        (PGBENCH.replace("<builtin: simple update>", "mine.sql"), "only mine.sql, which is not predicted"),
        (
            PGBENCH.replace("factor: 5", "factor: 50"),
            "pgbench ran with scale 50, but the prediction is for scale 5",
        ),
    ],
)
def test_what_is_no_result_of_pgbench_is_said(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(text)
    done = diskio(".", "--scale", "5", "--pgbench", str(tmp_path / "log"), cwd=tmp_path)
    assert (done.returncode, os.listdir(tmp_path)) == (2, ["log"])
    assert said in done.stderr


@pytest.mark.parametrize(("lang", "head"), [("en", "limited by"), ("ja", "制限要因")])
def test_tables_are_in_both_languages(kept: tuple[Path, dict[str, Any]], lang: str, head: str) -> None:
    done = diskio("--measured", str(kept[0]), "--clients", "4", "--lang", lang)
    assert done.returncode == 0
    assert done.stdout.count(head) == 2


def test_a_database_larger_than_memory_reads(kept: tuple[Path, dict[str, Any]]) -> None:
    words = [
        "--workload",
        "select",
        "--clients",
        "1",
        "--scale",
        "1000",
        "--page-cache",
        "1MiB",
        "--format",
        "json",
    ]
    [row] = json.loads(diskio("--measured", str(kept[0]), *words).stdout)["predictions"]
    assert row["predicted_tps"] < 5000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name a directory to measure, or a recording with --measured"),
        ([".", "--measured", "rec"], "name a directory to measure, or a recording with --measured"),
        (["--measured", "rec", "-o", "other"], "--measured has its recording already"),
        ([".", "--workload", "tpcc"], "no workload `tpcc`\n\nhint: did you mean tpcb?"),
        ([".", "--clients", "1,x"], "`1,x` is not a list of numbers"),
        ([".", "--clients", "0"], "`0` is not a list of numbers"),
        ([".", "--shared-buffers", "lots"], "`lots` is not a size"),
        ([".", "--from-postgres", "host=/nowhere dbname=app"], "--from-postgres: connection to server"),
    ],
)
def test_what_is_asked_for_wrongly_is_said(words: list[str], said: str, tmp_path: Path) -> None:
    done = diskio(*words, cwd=tmp_path)
    assert done.returncode == 2
    if "psql was not found" in done.stderr:
        pytest.skip("no psql")
    assert said in done.stderr
    assert os.listdir(tmp_path) == []


def test_a_recording_without_a_log_is_no_measurement(tmp_path: Path) -> None:
    rec = tmp_path / "rec"
    command = [
        sys.executable,
        "-m",
        "sysdock",
        "bench",
        "control",
        str(tmp_path),
        "--for",
        "100ms",
        "-o",
        str(rec),
    ]
    subprocess.run(command, capture_output=True, check=True)
    done = diskio("--measured", str(rec))
    assert done.returncode == 2
    assert "no log of 8 KiB with fdatasync by one process was measured" in done.stderr


def test_requests_are_counted_for_each_record() -> None:
    before, row = [0] * 17, {"operations": 100, "bytes": 819_200}
    after = [0, 0, 0, 0, 210, 0, 1600, 0, 0, 0, 0, 0, 0, 0, 0, 105, 0]
    assert measuring.per_flush(before, after, row) == measuring.Requests(2.1, 1.05)
    # Somebody else wrote 10 MB.
    assert measuring.per_flush(before, [*after[:6], 21_600, *after[7:]], row) is None
    assert measuring.per_flush(before, after, {**row, "operations": 0}) is None


def test_a_file_system_without_a_device_has_no_counters() -> None:
    assert measuring.counters(Path("/proc")) is None


def test_the_plan_is_what_the_model_reads() -> None:
    steps = plan(10**9, 4, True, 1 << 20)
    assert [step["item"] for step in steps] == ["log", "log", *["random_read"] * 3, "transfer"]
    assert [step["processes"] for step in steps if step["item"] == "random_read"] == [1, 2, 4]
    assert len(plan(10**9, 4, False, 1 << 20)) == 3


def test_rows_have_the_columns_of_the_tables(kept: tuple[Path, dict[str, Any]]) -> None:
    library = Library()
    for name, rows in (
        ("diskio_predictions", kept[1]["predictions"]),
        ("diskio_queries", kept[1]["queries"]),
    ):
        assert list(rows[0]) == [column.name for column in library.table(name).columns]
