"""`sysdock compare`."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from make_recording import RecordingMaker, sample_calls
from sysdock.screen.compare import differing_conditions


@pytest.fixture
def pair(maker: RecordingMaker) -> tuple[Path, Path]:
    """A run with many small writes, and one with a single write."""
    small = [
        {"t": n / 1000, "call": "write", "path": "/out", "transferred_bytes": 10, "dur_ns": 900_000}
        for n in range(500)
    ]
    one = [{"call": "write", "path": "/out", "transferred_bytes": 5000, "dur_ns": 900_000}]
    return maker.make(small, name="a"), maker.make(one, name="b")


def test_for_reading(cli, pair: tuple[Path, Path]) -> None:
    text = cli("compare", *pair).stdout
    assert "times as fast" in text.splitlines()[0]
    assert "gone    Small requests     /out" in text
    assert "解消" in cli("compare", *pair, "--lang", "ja").stdout
    assert "times as slow" in cli("compare", *reversed(pair)).stdout


def test_json_and_csv(cli, pair: tuple[Path, Path]) -> None:
    answer = json.loads(cli("compare", *pair, "--format", "json").stdout)
    assert list(answer) == ["totals", "findings", "calls", "files"]
    assert answer["findings"][0]["change"] == "gone"
    assert answer["files"] == [
        {
            "name": "/out",
            "time_change_ns": -449_100_000,
            "time_a_ns": 450_000_000,
            "time_b_ns": 900_000,
            "calls_a": 500,
            "calls_b": 1,
            "bytes_a": 5000,
            "bytes_b": 5000,
        }
    ]
    lines = cli("compare", *pair, "--part", "calls", "--format", "csv").stdout.splitlines()
    assert lines[1].split(",")[:2] == ["write", "-449100000"]
    done = cli("compare", *pair, "--format", "csv")
    assert (done.returncode, "csv is one table" in done.stderr) == (2, True)


def test_what_is_no_recording_is_named(cli, pair: tuple[Path, Path], tmp_path: Path) -> None:
    done = cli("compare", pair[0], tmp_path / "nothing")
    assert done.returncode == 2
    assert "nothing" in done.stderr


def test_what_is_not_of_calls_is_refused(cli, maker: RecordingMaker) -> None:
    calls, _, scan, experiment, *_ = maker.make_each_kind()
    for words in (("compare", calls, scan), ("checkup", scan)):
        refused = cli(*words)
        assert refused.returncode == 2
        said = "no calls of programs in this recording, which holds: scan of a file system"
        assert f"{scan}: {said}" in refused.stderr
        assert "sysdock disk diff" in refused.stderr
    assert cli("compare", calls, experiment).returncode == 2
    assert "which holds: experiment" in cli("checkup", experiment).stderr


def test_scans_are_compared_by_what_they_hold(cli, maker: RecordingMaker) -> None:
    scan = maker.make_scan()
    lines = cli("compare", scan, scan).stdout.splitlines()
    assert any(line.split()[:3] == ["fragmented", "files", "1"] for line in lines)
    assert not any("Calls by change" in line for line in lines)
    answer = json.loads(cli("compare", scan, scan, "--format", "json").stdout)
    assert {row["what"]: (row["a"], row["b"]) for row in answer["totals"]}["extents"] == (2, 2)


def test_info_asks_for_no_program_where_there_was_none(cli, maker: RecordingMaker) -> None:
    calls, _, scan, experiment, *_ = (cli("info", folder).stdout for folder in maker.make_each_kind())
    assert "\ncommand " in calls
    for text in (scan, experiment):
        assert "unknown" not in text.split("\ncomplete")[0]


def test_what_could_not_be_computed_is_no_empty_list(cli, maker: RecordingMaker) -> None:
    calls = sample_calls()
    calls[1]["dur_ns"] = 2**63 - 10**9
    maker.make(name="a")
    maker.make(calls, "b")
    result = cli("compare", "a", "b")
    assert result.returncode == 0
    assert result.stdout.count("b: could not be computed: overflow") == 3
    answer = json.loads(cli("compare", "a", "b", "--format", "json").stdout)
    assert answer["files"] is None
    assert "overflow" in answer["not_computed"]["files"]
    alone = cli("compare", "a", "b", "--part", "files", "--format", "csv")
    assert (alone.returncode, alone.stdout) == (2, "")


def test_an_analysis_is_compared_row_by_row(cli, pair: tuple[Path, Path]) -> None:
    [row] = json.loads(cli("compare", *pair, "io/files", "--format", "json").stdout)
    assert (row["path"], row["call"]) == ("/out", "write")
    assert (row["time_change_ns"], row["time_a_ns"], row["time_b_ns"]) == (-449_100_000, 450_000_000, 900_000)
    assert (row["calls_a"], row["calls_b"], row["max_a_ns"], row["bytes_b"]) == (500, 1, 900_000, 5000)
    text = cli("compare", *pair, "io/files").stdout
    assert "-449.1 ms  450.0 ms  900.0 µs" in text.splitlines()[1]
    lines = cli("compare", *pair, "io/files", "--format", "csv", "-p", "per_call=false").stdout.splitlines()
    assert lines[1].split(",")[:3] == ["/out", "all", "-449100000"]


def test_programs_are_found_again_by_name(cli, maker: RecordingMaker) -> None:
    """Process ids differ; what two processes of a program have in common are their sums alone."""
    one = [{"call": "write", "dur_ns": 100, "pid": 4242}]
    two = [
        {"call": "write", "dur_ns": 300, "pid": 4242},
        {"call": "write", "dur_ns": 500, "pid": 4243},
        {"call": "read", "dur_ns": 50, "pid": 4243},
    ]
    pair = maker.make(one, name="one"), maker.make(two, name="two")
    rows = json.loads(cli("compare", *pair, "syscalls/latency", "--format", "json").stdout)
    found = [
        (row["call"], row["time_a_ns"], row["time_b_ns"], row["p50_a_ns"], row["p50_b_ns"]) for row in rows
    ]
    assert found == [("write", 100, 800, 100, None), ("read", None, 50, None, 50)]


def test_what_cannot_be_compared_is_said(cli, pair: tuple[Path, Path]) -> None:
    for words, said in (
        (("io/calls_over_time",), "cannot be found again"),
        (("io/filez",), "io/files"),
        (("io/files", "--part", "calls"), "an analysis has no parts"),
        (("-p", "per_call=false"), "a parameter is one of an analysis"),
        (("locks/share_by_lock",), "needs the table"),
    ):
        done = cli("compare", *pair, *words)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_the_verb_says_which_takes_longer(cli) -> None:
    done = cli("compare", "--repeat", "8", "--format", "json", "--", "true", "--", "sleep 0.3")
    answer = json.loads(done.stdout)
    (elapsed,) = [row for row in answer["verdicts"] if row["is_primary"]]
    assert elapsed["verdict"] == "changed"
    assert elapsed["ratio"] > 2
    assert [len(times) for times in answer["elapsed_s"].values()] == [8, 8]
    assert cli("compare", "--repeat", "8", "--", "true").returncode == 2


def test_single_runs_are_no_measurement(cli, pair: tuple[Path, Path]) -> None:
    assert "One run of each proves nothing" in cli("compare", *pair).stdout


@pytest.mark.parametrize(
    ("lang", "expected"),
    [
        ("en", "the emulator differs, so numbers cannot be compared: qemu 7.2 | not known"),
        ("ja", "`emulator` が異なるため、数値は比較できません: qemu 7.2 | 不明"),
    ],
)
def test_conditions_that_differ_are_reported(
    lang: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Here a session is what its section states.
    section = SimpleNamespace(conditions=lambda session: session)
    monkeypatch.setattr("sysdock.screen.compare.sections_of", lambda _session: [section])
    same: Any = {"processor": "x86-64"}
    assert differing_conditions({**same, "emulator": "qemu 7.2"}, same, lang) == [expected]
