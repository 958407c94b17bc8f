"""`sysdock health` and `sysdock bench` on this machine's own file system."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import fork_server
import pytest
from load_runs import left, load
from sysdock.analysis import Session
from sysdock.cli.bench import _ITEMS
from sysdock.health.planned import load_class, plan_file
from sysdock.recording import Recording
from waiting import wait_for

sys.path.insert(0, str(Path(__file__).parents[1] / "disk"))
from loops import MIB, made

PLAN = """
title = "Tiny"
title_ja = "ごく小"
text = "As little as says something."
text_ja = "最小限。"

[[steps]]
item = "transfer"
processes = [1, 2]
length_bytes = [65_536, 1_048_576]
size_bytes = 33_554_432

[[steps]]
item = "log"
length_bytes = 8192
size_bytes = 1_048_576
time_ns = 200_000_000
"""


def sysdock(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return fork_server.run(*words, env={**fork_server.environment(), **more})


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory to load, next to the plan of a class."""
    (tmp_path / "tiny.toml").write_text(PLAN)
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def health(data: Path, *options: str, rec: Path | None = None) -> subprocess.CompletedProcess[str]:
    beside = rec or data.parent
    tiny = ["--class", str(beside / "tiny.toml")]
    return sysdock("health", str(data), "-o", str(beside / "rec"), *tiny, *options)


def test_a_class_of_ones_own(data: Path) -> None:
    done = health(data, "--lang", "en")
    assert done.returncode == 0, done.stderr
    assert "Highest rates" in done.stdout
    assert "Next: sysdock diagnose" in done.stdout
    assert left(data) == []
    report = (data.parent / "rec" / "report.html").read_text("utf-8")
    assert "Throughput by request length: Writes" in report
    with Session(Recording.open(data.parent / "rec")) as session:
        settings = session.fetch("SELECT processes, length_bytes FROM load_results WHERE operation = 'write'")
    assert settings == [(1, 65_536), (1, 1 << 20), (2, 65_536), (2, 1 << 20)]


def test_json_is_the_rows_of_the_table(data: Path) -> None:
    done = health(data, "--no-report", "--format", "json")
    assert done.returncode == 0, done.stderr
    with Session(Recording.open(data.parent / "rec")) as session:
        rows = session.dicts("SELECT * FROM load_results ORDER BY result_id")
    assert len(rows) == 9
    assert json.loads(done.stdout) == json.loads(json.dumps(rows))


def test_in_japanese(data: Path) -> None:
    done = health(data, "--no-report", "--lang", "ja")
    assert done.returncode == 0, done.stderr
    assert "最高速度" in done.stdout
    assert "所見" in done.stdout


def test_rates_for_the_file_of_the_site(data: Path) -> None:
    site = data.parent / "site.toml"
    site.write_text("[ratio]\nthreshold = 0.3\n")
    done = health(data, "--no-report", "--site", str(site))
    assert done.returncode == 0, done.stderr
    with Session(Recording.open(data.parent / "rec")) as session:
        best = {
            f"{operation}_bytes_s": pytest.approx(rate, rel=0.01)
            for operation, rate in session.fetch(
                "SELECT operation, max(bytes_per_s) FROM load_results WHERE item = 'transfer' "
                "AND length_bytes = 1048576 AND status = 'measured' GROUP BY operation"
            )
        }
    content = tomllib.loads(site.read_text())
    assert content["ratio"] == {"threshold": 0.3}
    assert content.get("rates", {}).get(str(data), {}) == best
    for operation in ("read", "write"):
        told = f"no {operation} rate" in done.stderr
        assert told is (f"{operation}_bytes_s" not in best)


def test_how_full_it_is(tmp_path: Path) -> None:
    with made(tmp_path / "image", ["mkfs.ext4", "-q"], 64 * MIB) as point:
        (tmp_path / "tiny.toml").write_text(PLAN)
        (point / "data").mkdir()
        done = health(point / "data", "--scan", "--no-report", rec=tmp_path)
        assert done.returncode == 0, done.stderr
        with Session(Recording.open(tmp_path / "rec")) as session:
            rules = {finding.rule for finding in session.diagnose()}
            [(mount, size)] = session.fetch("SELECT mount_point, size_bytes FROM file_systems")
    assert {"load/flush", "disk/nearly_full", "disk/fragmented_free_space"} <= rules
    assert mount == str(point)
    assert size > 40 * MIB


def test_a_file_of_the_site_that_is_broken_is_told_before_the_load(data: Path) -> None:
    site = data.parent / "site.toml"
    site.write_text("[ratio]\n")
    done = health(data, "--site", str(site))
    assert done.returncode == 2
    assert "threshold" in done.stderr
    assert not (data.parent / "rec").exists()


def test_mistakes(data: Path) -> None:
    rec = data.parent / "rec"
    (data.parent / "there").mkdir()
    (data.parent / "there" / "file").write_text("x")
    (data.parent / "broken.toml").write_text(PLAN.replace("length_bytes = 8192", "lenght_bytes = 8192"))
    for words, fact, hint in (
        (["health", "/nowhere", "-o", str(rec)], "No such file", "hint: "),
        (["health", "/etc/passwd", "-o", str(rec)], "not a directory", "hint: "),
        (["health", str(data), "-o", str(data.parent / "there")], "already exists", "another name"),
        (["health", str(data), "-o", str(rec), "--class", "prob"], "no class `prob`", "did you mean probe"),
        (["health", str(data), "-o", str(rec), "--class", "XXL"], "no class `XXL`", "./XXL.toml"),
        (["health", str(data), "-o", str(rec), "--class", "./no.toml"], "no.toml", ""),
        (
            ["health", str(data), "-o", str(rec), "--class", str(data.parent / "broken.toml")],
            "unknown key `lenght_bytes`",
            "did you mean length_bytes",
        ),
        (["health", str(data), "-o", str(rec), "--nodes", ","], "no hosts were named", "--nodes a,b,c"),
        (["bench", "log", str(data), "--length", "4XB"], "4XB", ""),
        (["bench", "dance", str(data)], "dance", ""),
    ):
        done = sysdock(*words)
        assert done.returncode == 2, (words, done.stdout)
        assert fact in done.stderr
        assert hint in done.stderr
        assert "Traceback" not in done.stderr
        assert not rec.exists()
        assert left(data) == []


def test_classes_can_be_listed(data: Path) -> None:
    done = sysdock("health", str(data), "--class", "XYZ")
    assert done.returncode == 2
    assert "`sysdock list plans`" in done.stderr
    listed = sysdock("list", "plans", "--format", "json")
    assert {"S", "M", "L", "probe"} <= {row["id"] for row in json.loads(listed.stdout)}


def test_ctrl_c_leaves_what_was_done(data: Path) -> None:
    long = PLAN.replace("time_ns = 200_000_000", "time_ns = 60_000_000_000")
    (data.parent / "tiny.toml").write_text(long)
    words = [
        sys.executable,
        "-m",
        "sysdock",
        "health",
        str(data),
        "-o",
        str(data.parent / "rec"),
        "--lang",
        "en",
    ]
    words += ["--no-report", "--class", str(data.parent / "tiny.toml")]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    wait_for(lambda: list(data.glob(".sysdock-load-*/*log*")), "the log")
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    out, said = process.communicate(timeout=600)
    assert process.returncode == 130, said
    assert "incomplete" in out
    assert "Traceback" not in said
    assert left(data) == []
    with Session(Recording.open(data.parent / "rec")) as session:
        found = session.fetch("SELECT operation, status FROM load_results ORDER BY result_id")
        assert [finding.rule for finding in session.diagnose() if finding.status == "ok"] == []
    assert len(found) == 9
    assert found[-1] == ("append", "interrupted")


@pytest.mark.parametrize("item", _ITEMS)
def test_each_item_of_bench(data: Path, item: str) -> None:
    rec = data.parent / "rec"
    small = ["--size", "8MiB", "--files", "50", "--processes", "2", "--for", "300ms"]
    done = sysdock("bench", item, str(data), *small, "-o", str(rec), "--format", "json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert rows
    for row in rows:
        assert (row["item"], row["processes"], row["errors"]) == (item, 2, 0)
        assert row["operations"] > 0
        assert row["status"] not in ("failed", "damaged", "full")
        seconds = (row["ended_ns"] - row["started_ns"]) / 1e9
        assert row["operations_per_s"] == pytest.approx(row["operations"] / seconds)
    assert left(data) == []
    table = sysdock("show", str(rec), "load/results", "--format", "json")
    assert len(json.loads(table.stdout)) == len(rows)


def test_bench_keeps_nothing_unless_it_is_told(data: Path) -> None:
    before = left(data.parent)
    done = sysdock("bench", "control", str(data), "--for", "100ms")
    assert done.returncode == 0, done.stderr
    assert "compute" in done.stdout
    assert left(data.parent) == before


@pytest.mark.parametrize("name", ["S", "M", "L", "probe"])
def test_the_generator_takes_the_plans_that_come_with_sysdock(data: Path, name: str) -> None:
    with plan_file(load_class(name).steps) as plan:
        steps = json.loads(plan.read_text())["steps"]
        # The time is up before the first step begins.
        ran = load(data, "--plan", str(plan), "--within", "0s")
    assert ran.status == 2, ran.said
    assert "nothing could be measured" in ran.said
    assert {row["status"] for row in ran.rows} == {"skipped"}
    assert len(ran.rows) >= len(steps)
