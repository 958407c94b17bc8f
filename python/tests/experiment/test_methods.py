"""What a run says of its own methods: read from its file, kept with the run, shown for each scenario."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from sysdock.cli import sysdock
from sysdock.experiment.methods import Method
from sysdock.experiment.one_run import Run, run_once
from sysdock.library import Reject, Workload
from sysdock.sentences import fact, say

HEAD = "method,calls,time_ns,samples,samples_within"


def run_with(folder: Path, *lines: str) -> Run:
    """A run that leaves a file of these lines."""
    command = ("sh", "-c", 'printf "%s\\n" "$@" > "$0"', "{scratch}/methods.csv", *lines)
    workload = Workload("w", "w", "w", command, methods="{scratch}/methods.csv")
    reject = Reject(swap=False, throttled=False, foreign_cpu=None, steal=None)
    return run_once(workload, {"scratch": folder}, folder, devices=(), reject=reject)


def test_what_the_profiler_does_not_know_is_empty(tmp_path: Path) -> None:
    run = run_with(tmp_path, HEAD, '"f(int, int)",2,900,1,3', "g,,,0,", "all others,,,7,")
    assert run.reason is None
    assert run.methods == (
        Method("f(int, int)", 2, 900, 1, 3),
        Method("g", None, None, 0, None),
        Method("all others", None, None, 7, None),
    )


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["method,calls"], f"its first line is not {HEAD}"),
        ([HEAD, "f,1,1,1"], "line 2 has not a name and four counts"),
        ([HEAD, "f,1,1,1,1", "g,-1,1,1,1"], "line 3 has not a name and four counts"),
        ([HEAD, "f,1,1.5,1,1"], "line 2 has not a name and four counts"),
        ([HEAD, ",1,1,1,1"], "line 2 has not a name and four counts"),
        ([HEAD, "f,1,9999999999999999999,1,1"], "line 2 has not a name and four counts"),
        ([HEAD, '"f,1,1,1,1'], "unexpected end of data"),
    ],
)
def test_a_file_that_is_none_is_said_and_the_run_does_not_count(
    tmp_path: Path, lines: list[str], said: str
) -> None:
    run = run_with(tmp_path, *lines)
    assert run.reason is not None
    assert say(run.reason, "en").startswith(f"methods ({tmp_path}/methods.csv): {said}")
    assert run.methods == ()


def test_a_run_without_its_file_does_not_count(tmp_path: Path) -> None:
    workload = Workload("w", "w", "w", ("true",), methods="methods.csv")
    reject = Reject(swap=False, throttled=False, foreign_cpu=None, steal=None)
    run = run_once(workload, {}, tmp_path, devices=(), reject=reject)
    file = str(tmp_path / "methods.csv")
    why = "no such file or directory"
    assert run.reason == fact("experiment/methods_unreadable", file=file, why=why)


def test_methods_of_scenarios_are_in_the_recording_and_its_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYSDOCK_STATE", str(tmp_path / "journals"))
    file = tmp_path / "own.toml"
    file.write_text(f"""
title = "w"
title_ja = "w"
question = "w"
question_ja = "w"
[plan]
baseline = "few"
blocks = 2
dry = 0
aa = false
[reject]
swap = false
throttled = false
foreign_cpu_percent = false
steal_percent = false
[factors.calls]
levels = ["10", "30"]
text = "w"
text_ja = "w"
[scenarios.few]
text = "w"
text_ja = "w"
[scenarios.many]
calls = "30"
text = "w"
text_ja = "w"
[[workloads]]
name = "work"
text = "w"
text_ja = "w"
run = ["sh", "-c", "printf '{HEAD}\\\\nmain,1,9000,2,8\\\\nwork,%s,4500,6,6\\\\n' $1 > $0", "{{scratch}}/of.csv", "{{calls}}"]
methods = "{{scratch}}/of.csv"
""")
    rec = tmp_path / "rec"
    command = ["experiment", "run", str(file), "-o", str(rec), "--trust"]
    CliRunner().invoke(sysdock, command, catch_exceptions=False, standalone_mode=False)
    words = ["show", str(rec), "experiment/methods", "--format", "json"]
    rows = json.loads(CliRunner().invoke(sysdock, words, catch_exceptions=False).stdout)
    found = [
        (row["scenario"], row["method"], row["calls"], row["mean_ns"], row["time_share"], row["cpu_share"])
        for row in rows
    ]
    assert found == [
        ("few", "main", 1, 9000, 1, 1),
        ("few", "work", 10, 450, 0.5, 0.75),
        ("many", "main", 1, 9000, 1, 1),
        ("many", "work", 30, 150, 0.5, 0.75),
    ]
    assert {row["runs"] for row in rows} == {2}
    assert "## Methods" in (rec / "documents" / "results.md").read_text()
