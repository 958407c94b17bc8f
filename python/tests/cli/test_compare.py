"""`sysdock compare`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from make_recording import RecordingMaker, sample_calls


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
    assert "gone    Small requests  /out" in text
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
    calls, _, scan, experiment = maker.make_each_kind()
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
    calls, _, scan, experiment = (cli("info", folder).stdout for folder in maker.make_each_kind())
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
