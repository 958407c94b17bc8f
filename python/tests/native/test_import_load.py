"""Logs of fio, IOR, mdtest and elbencho: the importer against a second, slow reading of the same files."""

from __future__ import annotations

import gzip
import itertools
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

LOGS = Path(__file__).parents[3] / "testdata" / "load"
Row = dict[str, Any]


@pytest.fixture
def results(native: Path, tmp_path: Path) -> Callable[..., list[Row]]:
    """Import logs; the rows of load_results, by name of column."""

    def rows(*logs: Path, table: str = "load_results") -> list[Row]:
        recording = tmp_path / f"rec{len(list(tmp_path.glob('rec*')))}"
        subprocess.run([native, "import", *logs, "-o", recording], check=True, capture_output=True)
        parts = str(recording / table / "*.parquet")
        key = "result_id, low_ns" if table == "load_latencies" else "result_id"
        answer = duckdb.connect().execute(f"SELECT * FROM read_parquet('{parts}') ORDER BY {key}")
        columns = [column[0] for column in answer.description or []]
        return [dict(zip(columns, values, strict=True)) for values in answer.fetchall()]

    return rows


def refused(native: Path, tmp_path: Path, *arguments: str | Path) -> str:
    """What an import says that ends with an error and leaves nothing."""
    recording = tmp_path / "refused"
    done = subprocess.run(
        [native, "import", *arguments, "-o", recording], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert not (recording / "recording.json").exists()
    assert "panicked" not in done.stderr
    return done.stderr


def fio_document(name: str) -> dict[str, Any]:
    text = (LOGS / name).read_text("utf-8")
    document: dict[str, Any] = json.JSONDecoder().raw_decode(text[text.index("{\n") :])[0]
    return document


@pytest.mark.parametrize(
    ("name", "section", "item", "operation", "processes", "length"),
    [
        ("fio-3.33.write.json", "write", "transfer", "write", 4, 1 << 20),
        ("fio-3.33.randread.json+", "read", "random_read", "read", 2, 4096),
        ("fio-3.33.fdatasync.txt", "read", "random_mix", "read", 1, 8192),
        ("fio-3.33.fdatasync.txt", "write", "random_mix", "write", 1, 8192),
    ],
)
def test_fio_is_read_as_its_json_says(
    results: Callable[..., list[Row]],
    name: str,
    section: str,
    item: str,
    operation: str,
    processes: int,
    length: int,
) -> None:
    entries = [job[section] for job in fio_document(name)["jobs"]]
    [row] = [row for row in results(LOGS / name) if row["operation"] == operation]
    assert (row["item"], row["processes"], row["length_bytes"]) == (item, processes, length)
    assert row["bytes"] == sum(entry["io_bytes"] for entry in entries)
    assert row["operations"] == sum(entry["total_ios"] for entry in entries)
    seconds = max(entry["runtime"] for entry in entries) / 1000
    assert row["bytes_per_s"] == pytest.approx(row["bytes"] / seconds)
    assert row["max_ns"] == max(entry["clat_ns"]["max"] for entry in entries)
    assert (row["engine"], row["status"], row["errors"]) == ("fio", "reported", 0)
    if len(entries) == 1:
        # fio rounds down to whole bytes, and states percentiles by the middles of its classes.
        assert row["bytes_per_s"] == pytest.approx(entries[0]["bw_bytes"], abs=1)
        assert row["operations_per_s"] == pytest.approx(entries[0]["iops"])
        assert row["p99_ns"] == entries[0]["clat_ns"]["percentile"]["99.000000"]


def test_classes_of_latency_add_up_to_the_operations(results: Callable[..., list[Row]]) -> None:
    log = LOGS / "fio-3.33.randread.json+"
    jobs = fio_document(log.name)["jobs"]
    classes = results(log, table="load_latencies")
    assert sum(row["operations"] for row in classes) == sum(job["read"]["total_ios"] for job in jobs)
    middles = {int(middle) for job in jobs for middle in job["read"]["clat_ns"]["bins"]}
    assert len(classes) == len(middles)
    for row, middle in zip(classes, sorted(middles), strict=True):
        assert row["low_ns"] <= middle <= row["high_ns"] <= row["low_ns"] * 1.016 + 1
    for lower, upper in itertools.pairwise(classes):
        assert lower["high_ns"] < upper["low_ns"]
    [whole] = results(log)
    # Percentiles of two processes come from the classes of both.
    assert whole["p50_ns"] in {row["high_ns"] for row in classes}
    below = sum(row["operations"] for row in classes if row["high_ns"] <= whole["p99_ns"])
    assert 0.99 <= below / whole["operations"] < 0.995


def test_processes_of_a_job_are_one_measurement(results: Callable[..., list[Row]]) -> None:
    first, second = results(LOGS / "fio-3.33.two_jobs.json")
    assert (first["processes"], first["bytes"], second["processes"], second["depth"]) == (
        3,
        3 * (8 << 20),
        2,
        4,
    )
    assert (first["direct"], second["direct"], second["item"]) == (False, True, "random_write")
    assert first["status"] == "too_short"
    assert "load_logs/not_invalidated" in first["note"]
    [created] = results(LOGS / "fio-3.33.create.json")
    assert (created["item"], created["operation"], created["processes"]) == ("metadata", "create", 1000)
    assert (created["operations"], created["bytes"], created["bytes_per_s"]) == (20_000, 0, None)
    [full] = results(LOGS / "fio-3.33.full.json")
    assert (full["status"], full["errors"]) == ("full", 1)
    assert "No space left on device" in full["note"]


def ior_lines(name: str) -> list[tuple[str, float, float]]:
    """Access, MiB/s and total time [s] of each iteration."""
    found = []
    for line in (LOGS / name).read_text("utf-8").splitlines():
        words = line.replace(",", " ").split()
        if len(words) in (9, 11, 12) and words[0] in ("read", "write") and re.fullmatch(r"\d", words[-1]):
            total = words[-3] if "," in line else words[-2]
            found.append((words[0], float(words[1]), float(total)))
    return found


@pytest.mark.parametrize(
    ("name", "rows"),
    [("ior-4.1.own_files.txt", 4), ("ior-4.1.direct.txt", 2), ("ior-4.1.csv", 4), ("ior-3.0.1.txt", 4)],
)
def test_each_iteration_of_ior_is_a_row(results: Callable[..., list[Row]], name: str, rows: int) -> None:
    iterations = ior_lines(name)
    assert len(iterations) == rows
    measured = results(LOGS / name)
    assert [row["operation"] for row in measured] == [access for access, _, _ in iterations]
    for row, (_, mib_per_s, seconds) in zip(measured, iterations, strict=True):
        assert row["bytes_per_s"] == pytest.approx(mib_per_s * 1024 * 1024)
        assert row["operations_per_s"] == pytest.approx(row["bytes_per_s"] / row["length_bytes"])
        # CSV has four digits of a second.
        assert row["bytes"] / row["bytes_per_s"] == pytest.approx(seconds, rel=0.01, abs=6e-5)
        assert row["processes"] == 2
        is_cached = row["operation"] == "read" and not row["direct"]
        assert row["status"] == ("not_known" if is_cached else "reported")


def test_ior_as_json_and_as_what_is_nearly_json(results: Callable[..., list[Row]]) -> None:
    document = json.loads((LOGS / "ior-4.1.reordered.json").read_text("utf-8"))
    expected = [(entry["access"], entry["bwMiB"] * 1048576) for entry in document["tests"][0]["Results"]]
    rows = results(LOGS / "ior-4.1.reordered.json")
    assert [(row["operation"], row["bytes_per_s"]) for row in rows] == expected
    assert [row["bytes"] for row in rows] == [8 << 20, 8 << 20]
    assert (rows[0]["layout"], rows[0]["sync"]) == ("shared", "end")
    text = (LOGS / "ior-3.2.1.json").read_text("utf-8")
    with pytest.raises(json.JSONDecodeError):
        json.loads(text[text.index("{") :])
    found = re.findall(r'"access": "(write|read)",\s*"bwMiB": ([\d.]+)', text)
    rows = results(LOGS / "ior-3.2.1.json")
    assert [(row["operation"], row["bytes_per_s"]) for row in rows] == [
        (access, pytest.approx(float(bandwidth) * 1048576)) for access, bandwidth in found
    ]
    assert len(rows) == 4


def test_a_summary_of_ior_2_is_the_mean_of_its_iterations(results: Callable[..., list[Row]]) -> None:
    lines = (LOGS / "ior-2.10.3.txt").read_text("utf-8").splitlines()
    means = [float(line.split()[3]) for line in lines if re.match(r"(write|read) +\d", line)]
    rows = results(LOGS / "ior-2.10.3.txt")
    assert [row["bytes_per_s"] for row in rows] == [pytest.approx(mean * 1048576) for mean in means]
    assert len(rows) == 2
    assert (rows[0]["length_bytes"], rows[0]["bytes"], rows[0]["processes"]) == (262144, 8 << 20, 2)
    assert '"load_logs/mean_in_mib_per_s","iterations":3' in rows[0]["note"]


@pytest.mark.parametrize(
    ("name", "tasks", "entries", "iterations"),
    [
        ("mdtest-4.1.own.txt", 2, 400, 2),
        ("mdtest-4.1.files.txt", 2, 200, 1),
        ("mdtest-4.1.time.txt", 2, 200, 3),
        ("mdtest-4.1.ranks.txt", 1, 100, 1),
        ("mdtest-1.9.4.txt", 2, 2000, 2),
    ],
)
def test_mdtest_rates_are_the_means_over_iterations(
    results: Callable[..., list[Row]], name: str, tasks: int, entries: int, iterations: int
) -> None:
    text = (LOGS / name).read_text("utf-8").split("SUMMARY time")[0]
    means = [
        float(line.split()[-2])
        for line in text.splitlines()
        if re.match(r"   (File|Directory|Tree) [a-z]+ *:? +\d", line)
    ]
    rows = results(LOGS / name)
    assert [row["operations_per_s"] for row in rows] == [pytest.approx(mean) for mean in means]
    assert len(rows) >= 6
    work = [row for row in rows if row["item"] == "metadata"]
    assert {(row["processes"], row["operations"]) for row in work} == {(tasks, entries * iterations)}
    assert {row["operation"] for row in rows} >= {"mkdir", "rmdir"}
    for row in work:
        if row["operation"] == "read":
            assert row["status"] == "not_known"
            assert row["bytes"] == row["operations"] * row["length_bytes"]


def test_elbencho_is_read_to_its_last_worker(results: Callable[..., list[Row]]) -> None:
    text = (LOGS / "elbencho-1.6.sweep.txt").read_text("utf-8")
    times = re.findall(r"WRITE +Elapsed ms +: +(\d+) +(\d+)", text)
    mib_per_s = re.findall(r"Throughput MiB/s : +\d+ +(\d+)", text)
    written = [row for row in results(LOGS / "elbencho-1.6.sweep.txt") if row["operation"] == "write"]
    assert len(written) == len(times) == 2
    for row, (first, last), rate in zip(written, times, mib_per_s, strict=True):
        assert row["overlap"] == pytest.approx(int(first) / int(last))
        assert row["bytes_per_s"] == int(rate) * 1024 * 1024
        assert row["bytes"] == 1048576 << 20
        assert row["bytes"] / row["bytes_per_s"] == pytest.approx(int(last) / 1000, rel=0.001)


def elbencho_phases() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (LOGS / "elbencho-3.1.json").read_text("utf-8").splitlines()]


def test_elbencho_as_json_has_what_each_phase_did(results: Callable[..., list[Row]]) -> None:
    rows = results(LOGS / "elbencho-3.1.json")
    phases = elbencho_phases()
    data = [phase for phase in phases if "bytes/s" in phase["last_done"]]
    assert len(data) >= 5
    for phase in data:
        done = phase["last_done"]
        [row] = [row for row in rows if row["bytes_per_s"] == int(done["bytes/s"])]
        assert row["bytes"] == int(done["bytes"])
        assert row["operations"] == row["bytes"] / row["length_bytes"]
        assert row["length_bytes"] == int(phase["config"]["block_size"])
        assert row["direct"] == (phase["config"]["direct_io"] == "true")
        assert row["processes"] == 2
        elapsed = [int(phase[when]["elapsed_time_ms"]) for when in ("first_done", "last_done")]
        assert row["ended_ns"] - row["started_ns"] == elapsed[1] * 1_000_000
        assert row["overlap"] == pytest.approx(elapsed[0] / elapsed[1])
    entries = [phase for phase in phases if "entries/s" in phase["last_done"]]
    rates = {row["operations_per_s"] for row in rows if row["item"] == "metadata"}
    assert rates == {float(phase["last_done"]["entries/s"]) for phase in entries}
    words = {row["operation"] for row in rows if row["item"] == "metadata"}
    assert words == {"mkdir", "create", "stat", "open", "remove", "rmdir"}
    [first, *_] = phases
    histogram = first["last_done"]["latency"]["IO"]["histogram"]["buckets"]
    classes = [
        row for row in results(LOGS / "elbencho-3.1.json", table="load_latencies") if row["result_id"] == 1
    ]
    assert (
        sum(row["operations"] for row in classes) == sum(int(bucket["count"]) for bucket in histogram) == 128
    )


def test_all_three_forms_of_elbencho_say_the_same(results: Callable[..., list[Row]]) -> None:
    of_json = results(LOGS / "elbencho-3.1.json")
    for name in ("elbencho-3.1.csv", "elbencho-3.1.txt"):
        rows = results(LOGS / name)
        assert [(row["item"], row["operation"], row["status"]) for row in rows] == [
            (row["item"], row["operation"], row["status"]) for row in of_json
        ]
        for row, exact in zip(rows, of_json, strict=True):
            assert row["overlap"] == pytest.approx(exact["overlap"])
            assert (row["processes"], row["length_bytes"]) == (exact["processes"], exact["length_bytes"])
            # Whole MiB/s, rounded down.
            assert 0 <= (exact["bytes_per_s"] or 0) - (row["bytes_per_s"] or 0) < 1024 * 1024
            if row["item"] == "metadata":
                assert row["operations_per_s"] == exact["operations_per_s"]
                assert row["operations"] == exact["operations"]


def test_logs_of_several_tools_are_one_recording(native: Path, tmp_path: Path) -> None:
    logs = sorted(path for path in LOGS.iterdir() if path.suffix != ".md")
    packed = tmp_path / "without_a_name"
    packed.write_bytes(gzip.compress(logs[0].read_bytes()))
    recording = tmp_path / "rec"
    subprocess.run([native, "import", *logs, packed, "-o", recording], check=True, capture_output=True)
    manifest = json.loads((recording / "recording.json").read_text("utf-8"))
    [capture] = manifest["captures"]
    assert (capture["recorder"], capture["unit"], capture["complete"]) == ("load-log", "results", True)
    assert [source["bytes"] for source in capture["sources"]] == [
        path.stat().st_size for path in (*logs, packed)
    ]
    assert [family["family"] for family in capture["families"]] == ["load"]
    assert capture["total"] == capture["understood"] == manifest["tables"]["load_results"]["rows"]
    assert capture["counts"]["reported"] < capture["total"]
    parts = str(recording / "load_results" / "*.parquet")
    ids = duckdb.connect().execute(f"SELECT result_id FROM read_parquet('{parts}') ORDER BY 1").fetchall()
    assert ids == [(number + 1,) for number in range(len(ids))]
    assert len(ids) > 50


def test_standard_input_is_recognized_and_a_log_of_strace_still_read(native: Path, tmp_path: Path) -> None:
    for name, text, recorder in [
        ("fio", (LOGS / "fio-3.33.write.json").read_bytes(), "fio-log"),
        ("strace", b"1 1.0 close(3) = 0 <0.1>\n", "strace-log"),
    ]:
        recording = tmp_path / name
        subprocess.run([native, "import", "-", "-o", recording], input=text, check=True, capture_output=True)
        manifest = json.loads((recording / "recording.json").read_text("utf-8"))
        assert manifest["captures"][0]["recorder"] == recorder
        assert manifest["captures"][0]["understood"] == 1


def test_what_cannot_be_read_is_counted_or_refused(native: Path, tmp_path: Path) -> None:
    log = LOGS / "fio-3.33.write.json"
    cut = tmp_path / "cut.json"
    cut.write_bytes(log.read_bytes()[:3000])
    assert "the log ends within a document" in refused(native, tmp_path, cut)
    both = tmp_path / "both.json"
    both.write_bytes(log.read_bytes() + cut.read_bytes())
    subprocess.run([native, "import", both, "-o", tmp_path / "rec"], check=True, capture_output=True)
    parts = str(tmp_path / "rec" / "import_issues" / "*.parquet")
    lines = log.read_text("utf-8").count("\n")
    found = (
        duckdb.connect().execute(f"SELECT issue, line, understood FROM read_parquet('{parts}')").fetchall()
    )
    assert found == [("broken_result", lines + 1, False)]
    manifest = json.loads((tmp_path / "rec" / "recording.json").read_text("utf-8"))
    assert (manifest["captures"][0]["total"], manifest["captures"][0]["understood"]) == (2, 1)
    killed = tmp_path / "killed.txt"
    killed.write_text("mdtest-3.3.0 was launched with 4 total task(s) on 1 node(s)\nsrun: killed\n")
    assert "killed" in refused(native, tmp_path, killed)
    deep = tmp_path / "deep.json"
    deep.write_text('{"fio version": ' + "[" * 1_000_000)
    assert "none of it was understood" in refused(native, tmp_path, deep)


def test_kinds_of_logs_are_not_mixed(native: Path, tmp_path: Path) -> None:
    trace = tmp_path / "run.strace"
    trace.write_text("1 1.0 close(3) = 0 <0.1>\n")
    log = LOGS / "ior-4.1.csv"
    for logs in [(trace, log), (log, trace)]:
        said = refused(native, tmp_path, *logs)
        assert "run.strace: no output of fio, IOR, mdtest or elbencho" in said
        assert "recordings of their own" in said
    assert "none.txt: No such file" in refused(native, tmp_path, log, tmp_path / "none.txt")
    for option in (["--align"], ["--follow"], ["--date", "2026-11-20"], ["--offset", "a=1"]):
        assert f"{option[0]}: " in refused(native, tmp_path, *option, log)


def test_a_log_damaged_by_its_packing_keeps_what_was_read(native: Path, tmp_path: Path) -> None:
    packed = tmp_path / "log.gz"
    text = (LOGS / "fio-3.33.write.json").read_bytes()
    packed.write_bytes(gzip.compress(text + b"\n" * 10)[:-4])
    done = subprocess.run(
        [native, "import", packed, "-o", tmp_path / "rec"], capture_output=True, check=False
    )
    assert done.returncode == 2
    [capture] = json.loads((tmp_path / "rec" / "recording.json").read_text("utf-8"))["captures"]
    assert (capture["ended_by"], capture["understood"]) == ("input error", 1)
    assert capture["issues"] == {"damaged_input": 1}
