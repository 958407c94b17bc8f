"""Experiments that are really run: what they measure, what a stopped one leaves, and what is refused before."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sampling import some
from stated import stated
from sysdock.cli import sysdock
from sysdock.errors import UserError
from sysdock.experiment import loop_device as module
from sysdock.experiment import running
from sysdock.experiment.one_run import Run
from sysdock.experiment.prediction import content_requests
from sysdock.experiment.preparation import PREPARATIONS
from sysdock.experiment.tools import run_tool
from sysdock.experiment.trust import files_of, own_experiment
from sysdock.library import Library
from sysdock.library.experiments import parse_experiment
from sysdock.recording import Recording
from sysdock.sentences import fact, fact_from_json, facts_from_json, json_of, listed, say

KNOWHOW = Path(__file__).resolve().parents[3] / "knowhow"
MIB = 1 << 20
SMALL = ("--set", "files=4", "--set", f"size_bytes={4 * MIB}", "--set", f"device_bytes={402653184}")
PIECES = ("--set", "piece_bytes=65536")


@pytest.fixture
def run() -> Callable[..., Result]:
    """Runs `sysdock`."""

    def run_(*words: object) -> Result:
        return CliRunner().invoke(sysdock, [*map(str, words)], catch_exceptions=False, standalone_mode=False)

    return run_


@pytest.fixture
def needs_root() -> None:
    """Skips where nothing can be mounted."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")


@pytest.fixture(autouse=True)
def journals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where experiments note what they change."""
    monkeypatch.setenv("SYSDOCK_STATE", str(tmp_path / "journals"))
    return tmp_path / "journals"


@pytest.fixture
def own(tmp_path: Path) -> Callable[[str], Path]:
    """Writes the file of an experiment: every table that needs texts gets them."""

    def make(body: str) -> Path:
        lines = [f'{key} = "words"' for key in ("title", "title_ja", "question", "question_ja")]
        text = "\n".join([*lines, body])
        text = re.sub(
            r"^(values|levels|do|name|\"?like\"?) = (.*)$",
            r'\1 = \2\ntext = "w"\ntext_ja = "w"',
            text,
            flags=re.M,
        )
        text = re.sub(r"^(\[scenarios\.\w+\])$", r'\1\ntext = "w"\ntext_ja = "w"', text, flags=re.M)
        (tmp_path / "own.toml").write_text(text)
        return tmp_path / "own.toml"

    return make


def cold_reads(run: Callable, folder: Path) -> list[dict]:
    """Rows of the analysis of cold reads."""
    return json.loads(run("show", folder, "disk/cold_reads", "--format", "json").stdout)


def verdicts(run: Callable, folder: Path) -> dict[tuple[str, str], dict]:
    """By scenario and metric."""
    rows = json.loads(run("show", folder, "experiment/verdicts", "--format", "json").stdout)
    return {(row["scenario"], row["metric"]): row for row in rows}


def runs_of(run: Callable, folder: Path) -> list[dict]:
    """Rows of the analysis of runs."""
    return json.loads(run("show", folder, "experiment/runs", "--format", "json").stdout)


def left_behind(folder: Path) -> list[str]:
    """Mounts and loop devices of what was made in a folder."""
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    loops = subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=True).stdout
    return [line for line in [*mounts, *loops.splitlines()] if str(folder) in line]


WRITES = """
[claim]
primary = "device_write_bytes"
[plan]
baseline = "once"
blocks = 8
dry = 1
[reject]
foreign_cpu_percent = false
steal_percent = false
[factors.times]
levels = ["1", "2"]
[scenarios.once]
[scenarios.twice]
times = "2"
[[prepare]]
do = "make_file_system"
file_system = "ext4"
device_bytes = 67108864
[[workloads]]
name = "write"
run = ["sh", "-c", 'for n in $(seq "$1"); do dd if=/dev/zero of="$2" bs=1M count=4 oflag=direct status=none; done', "sh", "{times}", "{data}/big"]
after = [["rm", "-f", "{data}/big"]]
"""


@pytest.mark.usefixtures("needs_root")
def test_twice_the_writes_are_found_exactly(run: Callable, own: Callable, tmp_path: Path) -> None:
    run("experiment", "run", own(WRITES), "-o", tmp_path / "rec", "--trust", "--seed", 1)
    found = verdicts(run, tmp_path / "rec")
    changed = found["twice", "device_write_bytes"]
    assert (changed["verdict"], changed["is_primary"], changed["blocks"]) == ("changed", True, 8)
    assert changed["ratio"] == pytest.approx(2, abs=0.1)
    assert found["A/A", "device_write_bytes"]["verdict"] != "changed"
    rows = runs_of(run, tmp_path / "rec")
    measured = [row for row in rows if row["kind"] == "measured"]
    blocks = [{row["scenario"] for row in measured if row["block"] == block} for block in range(1, 9)]
    assert blocks == [{"once", "A/A", "twice"}] * 8
    assert [row["kind"] for row in rows[:2]] == ["dry", "dry"]
    # The order is drawn for each block.
    orders = {tuple(row["scenario"] for row in measured if row["block"] == block) for block in range(1, 9)}
    assert len(orders) > 2
    assert left_behind(tmp_path) == []
    assert list((tmp_path / "journals").glob("*")) == []
    assert list((tmp_path / "rec").rglob("*.image")) == []
    documents = tmp_path / "rec" / "documents"
    assert "changed by +" in (documents / "results.md").read_text()
    assert "シード 1 から" in (documents / "procedure.ja.md").read_text()


@pytest.mark.usefixtures("needs_root")
def test_the_order_comes_from_the_seed(run: Callable, own: Callable) -> None:
    words = ("experiment", "plan", own(WRITES), "--seed")
    assert run(*words, 7).stdout == run(*words, 7).stdout
    assert run(*words, 7).stdout.split("order of")[1] != run(*words, 8).stdout.split("order of")[1]


SETTING = """
[claim]
primary = "elapsed_s"
detect_percent = 1000
[plan]
blocks = 8
aa = false
dry = 0
[reject]
foreign_cpu_percent = false
steal_percent = false
[factors.centisecs]
setting = "sysctl:vm.dirty_writeback_centisecs"
levels = ["500", "700"]
[scenarios.a]
[scenarios.b]
centisecs = "700"
[[workloads]]
name = "read"
run = ["sh", "-c", 'test $(cat /proc/sys/vm/dirty_writeback_centisecs) = "$1"', "sh", "{centisecs}"]
"""


@pytest.mark.usefixtures("needs_root")
def test_a_setting_is_made_for_each_run_and_put_back(run: Callable, own: Callable, tmp_path: Path) -> None:
    place = Path("/proc/sys/vm/dirty_writeback_centisecs")
    before = place.read_text()
    run("experiment", "run", own(SETTING), "-o", tmp_path / "rec", "--trust")
    assert place.read_text() == before
    rows = runs_of(run, tmp_path / "rec")
    # The command itself looks whether the setting is made.
    assert (len(rows), {row["rejected"] for row in rows}) == (16, {False})


@pytest.mark.usefixtures("needs_root")
def test_the_level_default_leaves_a_setting_as_it_is(run: Callable, own: Callable, tmp_path: Path) -> None:
    before = Path("/proc/sys/vm/dirty_writeback_centisecs").read_text().strip()
    body = SETTING.replace('["500", "700"]', '["default", "700"]')
    body = body.replace('= "$1"', f'= $(echo "$1" | sed s/default/{before}/)')
    run("experiment", "run", own(body), "-o", tmp_path / "rec", "--trust")
    assert {row["rejected"] for row in runs_of(run, tmp_path / "rec")} == {False}


@pytest.mark.usefixtures("needs_root")
def test_a_killed_experiment_is_repaired_and_goes_on(run: Callable, own: Callable, tmp_path: Path) -> None:
    place = Path("/proc/sys/vm/dirty_writeback_centisecs")
    before = place.read_text()
    body = SETTING.replace("test $(cat", f"test -e {tmp_path}/go || exec sleep 100; test $(cat")
    words = ["experiment", "run", str(own(body)), "-o", str(tmp_path / "rec"), "--trust", "--seed", "1"]
    process = subprocess.Popen([sys.executable, "-m", "sysdock", *words], stderr=subprocess.DEVNULL)
    while not children_of(process.pid, "sleep"):
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    (tmp_path / "go").touch()
    assert run("experiment", "repair").exit_code == 0
    assert place.read_text() == before
    run("experiment", "resume", tmp_path / "rec", "--trust")
    assert len({row["block"] for row in runs_of(run, tmp_path / "rec") if not row["rejected"]}) == 8
    assert stated(tmp_path / "rec")["complete"]


@pytest.mark.parametrize(
    ("how", "repaired_by"),
    some(
        [
            ("measured", "repair"),
            ("before", "repair"),
            ("duet", "repair"),
            ("measured", "the next experiment"),
        ],
        2,
    ),
)
def test_what_runs_when_an_experiment_is_killed_is_ended_by_a_repair(
    run: Callable, own: Callable, tmp_path: Path, how: str, repaired_by: str
) -> None:
    # Unlike the time of any other sleep.
    time_ = f"{4000 + os.getpid() / 1e6:.6f}"
    script = f"sleep {time_} & setsid env -i sleep {time_} & sleep {time_}"
    body = f"""{COMMAND}run = {json.dumps(["echo", "{how}"] if how == "before" else ["sh", "-c", script, "{how}"])}
before = {json.dumps([["sh", "-c", script]] if how == "before" else [])}
"""
    if how == "duet":
        body = body.replace("[plan]", "[plan]\nduet = true")
    words = ["experiment", "run", str(own(body)), "-o", str(tmp_path / "rec"), "--trust", "--seed", "1"]
    wanted = 6 if how == "duet" else 3
    stranger = subprocess.Popen(["sleep", time_])
    process = subprocess.Popen([sys.executable, "-m", "sysdock", *words], stderr=subprocess.DEVNULL)
    try:
        while len(sleepers(time_)) < 1 + wanted:
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
        process.wait()
        assert len(sleepers(time_)) >= 2
        if repaired_by == "repair":
            done = run("experiment", "repair")
            assert done.exit_code == 0
            assert "repaired: 1 change undone" in done.stderr
        else:
            run("experiment", "compare", "--blocks", "2", "true", "true")
        assert sleepers(time_) == [stranger.pid]
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
        for pid in sleepers(time_):
            os.kill(pid, signal.SIGKILL)


def sleepers(time_: str) -> list[int]:
    """Processes that sleep for so long."""
    return [pid for pid in children_of(None, time_) if Path(f"/proc/{pid}/comm").read_text() == "sleep\n"]


def children_of(parent: int | None, word: str) -> list[int]:
    """Processes with a word in their command, below another one."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            above, each = [], int(folder.name)
            while parent is not None and each > 1:
                each = int((Path("/proc") / str(each) / "stat").read_text().rsplit(")", 1)[1].split()[1])
                above.append(each)
        except (OSError, IndexError):
            continue
        if any(word in text for text in words) and (parent is None or parent in above):
            found.append(int(folder.name))
    return found if parent is not None else [pid for pid in found if pid != os.getpid()]


@pytest.mark.usefixtures("needs_root")
def test_an_interrupted_run_takes_down_what_it_made_and_goes_on_later(
    run: Callable, own: Callable, tmp_path: Path
) -> None:
    body = WRITES.replace("blocks = 8", "blocks = 9")
    words = ["experiment", "run", str(own(body)), "-o", str(tmp_path / "rec"), "--trust"]
    process = subprocess.Popen([sys.executable, "-m", "sysdock", *words], stderr=subprocess.PIPE, text=True)
    runs = tmp_path / "rec" / "experiment_runs"
    while not list(runs.glob("*.parquet")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.stderr
    said = process.stderr.read()
    assert process.wait(timeout=600) == 130
    assert left_behind(tmp_path) == []
    assert "what was measured so far" in said
    manifest = stated(tmp_path / "rec")
    assert (manifest["complete"], manifest["ended_by"]) == (False, "interrupted")
    assert "**Not complete**" in (tmp_path / "rec" / "documents" / "results.md").read_text()
    run("experiment", "resume", tmp_path / "rec", "--trust")
    assert verdicts(run, tmp_path / "rec")["twice", "device_write_bytes"]["blocks"] == 9
    assert left_behind(tmp_path) == []


COMMAND = """
[plan]
blocks = 8
aa = false
dry = 0
[reject]
foreign_cpu_percent = false
steal_percent = false
[factors.how]
levels = ["a", "b"]
[scenarios.a]
[scenarios.b]
how = "b"
[[workloads]]
name = "own"
"""


PRINTS = """
[workloads.measures.tps]
pattern = 'tps = (\\S+)'
better = "higher"
text = "w"
text_ja = "w"
"""


def test_a_workload_that_does_not_print_the_primary_metric_is_no_measurement(
    run: Callable, own: Callable, tmp_path: Path
) -> None:
    body = f"""{COMMAND}primary = "tps"
run = ["echo", "{{how}}", "tps"]
{PRINTS}"""
    run("experiment", "run", own(body), "-o", tmp_path / "rec", "--trust")
    reasons = {row["reason"] for row in runs_of(run, tmp_path / "rec")}
    assert reasons == {json_of(fact("experiment/not_in_output", metric="tps"))}
    assert verdicts(run, tmp_path / "rec")["b", "tps"]["verdict"] == "invalid"


@pytest.mark.parametrize(("printed", "why"), [("", "not_in_output"), ("tps = many", "no_number_in_output")])
def test_another_metric_that_is_not_printed_is_missing_and_the_run_counts(
    run: Callable, own: Callable, tmp_path: Path, printed: str, why: str
) -> None:
    body = f"""{COMMAND}run = ["echo", "{{how}}", "{printed}"]
{PRINTS}"""
    run("experiment", "run", own(body), "-o", tmp_path / "rec", "--trust")
    assert {row["rejected"] for row in runs_of(run, tmp_path / "rec")} == {False}
    of_b = {
        metric: row for (scenario, metric), row in verdicts(run, tmp_path / "rec").items() if scenario == "b"
    }
    assert of_b["elapsed_s"]["blocks"] == 8
    assert (of_b["tps"]["verdict"], of_b["tps"]["reason"]) == (
        "invalid",
        json_of(fact("experiment/no_run_has_metric")),
    )
    checks = json.loads(run("show", tmp_path / "rec", "experiment/checks", "--format", "json").stdout)
    [check] = [row for row in checks if row["name"] == "missing"]
    assert (check["effect"], check["is_valid"]) == (1, True)
    reason = fact(f"experiment/{why}", metric="tps")
    assert check["note"] == json_of(
        fact("experiment/without_value", metric="tps", runs=16, all=16, why=listed([reason]))
    )


def test_a_metric_that_some_runs_lack_is_compared_in_the_other_blocks(
    run: Callable, own: Callable, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = """'echo >> "$0"; test $(wc -l < "$0") = 3 || echo tps = 5'"""
    body = f"""{COMMAND}run = ["sh", "-c", {script}, "{{scratch}}/{{how}}"]
{PRINTS}"""
    run("experiment", "run", own(body), "-o", tmp_path / "rec", "--trust")
    found = verdicts(run, tmp_path / "rec")
    assert (found["b", "elapsed_s"]["blocks"], found["b", "tps"]["blocks"]) == (8, 7)
    # Computed again from what is kept, the same.
    run("experiment", "resume", tmp_path / "rec", "--trust")
    assert verdicts(run, tmp_path / "rec") == found
    sql = "SELECT DISTINCT value, reason FROM experiment_metrics WHERE metric = 'tps' ORDER BY ALL"
    capfd.readouterr()
    run("query", tmp_path / "rec", sql, "--format", "json")
    rows = json.loads(capfd.readouterr().out)
    assert rows == [
        {"value": 5, "reason": None},
        {"value": None, "reason": json_of(fact("experiment/not_in_output", metric="tps"))},
    ]


def test_what_a_workload_prints_is_compared(run: Callable, own: Callable, tmp_path: Path) -> None:
    body = f"""{COMMAND}primary = "tps"
run = ["sh", "-c", "test $0 = a && echo tps = 1,000.5 || echo tps = 2001", "{{how}}"]
[workloads.measures.tps]
pattern = 'tps = ([0-9.,]+)'
better = "higher"
text = "w"
text_ja = "w"
"""
    run("experiment", "run", own(body), "-o", tmp_path / "rec", "--trust")
    row = verdicts(run, tmp_path / "rec")["b", "tps"]
    assert (row["verdict"], row["ratio"], row["baseline_median"]) == ("changed", 2.0, 1000.5)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("echo no > /dev/stderr; exit 3", "exit status 3: no"),
        ("kill -9 $$", "ended by signal 9"),
        ("sleep 100", "it was ended, as its time was over"),
    ],
)
def test_a_workload_that_fails_is_rejected_with_its_reason(
    run: Callable, own: Callable, tmp_path: Path, command: str, said: str
) -> None:
    body = f'{COMMAND}timeout_s = 0.2\nrun = ["sh", "-c", "{command}", "{{how}}"]'
    run("experiment", "run", own(body), "-o", tmp_path / "rec", "--trust")
    reasons = {row["reason"] for row in runs_of(run, tmp_path / "rec")}
    assert {say(facts_from_json(reason), "en") for reason in reasons} == {said}
    assert verdicts(run, tmp_path / "rec")["b", "elapsed_s"]["verdict"] == "invalid"


def test_a_workload_that_fails_while_it_warms_up_ends_all(
    run: Callable, own: Callable, tmp_path: Path
) -> None:
    body = COMMAND.replace("dry = 0", "dry = 1") + 'run = ["sh", "-c", "echo bad >&2; exit 1", "{how}"]'
    with pytest.raises(UserError, match="exit status 1: bad"):
        run("experiment", "run", own(body), "-o", tmp_path / "rec", "--trust")
    assert stated(tmp_path / "rec")["ended_by"] == "failed"


def test_a_disturbed_block_waits_before_it_is_repeated(
    run: Callable, own: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = ("machine_swapped", "other_programs", "step_failed")
    reasons = iter([fact(f"experiment/{code}") for code in codes])
    asked = []
    real = running.run_once

    class Pauses:
        def __getitem__(self, attempt: int) -> float:
            asked.append(attempt)
            return 0.0

    def disturbed(*words: object, **names: object) -> Run:
        return replace(real(*words, **names), reason=next(reasons, None))

    monkeypatch.setattr(running, "run_once", disturbed)
    monkeypatch.setattr(running, "_PAUSES_S", Pauses())
    run("experiment", "run", own(f'{COMMAND}run = ["true", "{{how}}"]'), "-o", tmp_path / "rec", "--trust")
    # Not after the check, which says something about the command.
    assert asked == [0, 1]
    assert len({row["block"] for row in runs_of(run, tmp_path / "rec") if not row["rejected"]}) == 8


def test_results_that_differ_are_rejected_by_a_check(run: Callable, own: Callable, tmp_path: Path) -> None:
    body = f"""{COMMAND}run = ["sh", "-c", "echo $0 > {tmp_path}/answer", "{{how}}"]
check = [["grep", "-q", "a", "{tmp_path}/answer"]]"""
    run("experiment", "run", own(body), "-o", tmp_path / "rec", "--trust")
    reasons = [row["reason"] for row in runs_of(run, tmp_path / "rec") if row["rejected"]]
    assert reasons
    found = [fact_from_json(reason) for reason in reasons]
    assert {each.code for each in found} == {"experiment/step_failed"}
    assert all(each.values["command"].startswith("grep -q a") for each in found)


@pytest.mark.more
@pytest.mark.usefixtures("needs_root")
def test_what_comes_with_sysdock_measures_fragments(run: Callable, tmp_path: Path) -> None:
    words = ("--blocks", 2, *PIECES, *SMALL)
    done = run("experiment", "run", "disk/fragments", "-o", tmp_path / "rec", *words)
    rows = {(row["file_system"], row["files"]): row for row in cold_reads(run, tmp_path / "rec")}
    assert len(rows) == 3 * 3
    for kind in ("ext4", "xfs", "btrfs"):
        broken, after = rows[kind, "broken"], rows[kind, "defragmented"]
        assert broken["fragments"] == 4 * 64
        assert broken["predicted_requests"] == pytest.approx(broken["requests"], rel=0.03)
        assert after["fragments"] <= 2 * 4
        assert after["requests"] < broken["requests"] / 2
        assert rows[kind, "whole"]["times_control"] == 1
    assert {row["runs"] for row in rows.values()} == {2}
    documents = tmp_path / "rec" / "documents"
    assert "read_ahead_kb" in (documents / "environment.md").read_text()
    procedure = (documents / "procedure.ja.md").read_text()
    assert "# 手順: 順次読み込みでの断片化のコスト" in procedure
    assert f"sysdock experiment run disk/fragments -o {tmp_path / 'rec'}" in procedure
    # The commands are those that ran.
    assert "mkfs.ext4" in procedure
    assert "ext4" in done.stdout
    assert left_behind(tmp_path) == []
    assert list((tmp_path / "rec").rglob("*.image")) == []
    # Each scan is a recording of its own: a map shows where the pieces lay.
    assert "kind         experiment\n" in run("info", tmp_path / "rec").stdout
    assert Recording.open(tmp_path / "rec" / "scans" / "case-003").families == {"scan"}


@pytest.mark.usefixtures("needs_root")
def test_holes_of_a_comb_are_read_as_predicted(
    run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The folder may be named from here, and by a link.
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path / "link")
    words = ("--blocks", 1, "--set", "file_system=xfs", *PIECES, *SMALL)
    run("experiment", "run", "disk/comb", "-o", "rec", *words)
    rows = {row["files"]: row for row in cold_reads(run, Path("rec"))}
    assert rows["broken"]["fragments"] == pytest.approx(4 * 64, rel=0.01)
    assert rows["broken"]["predicted_requests"] == pytest.approx(rows["broken"]["requests"], rel=0.03)
    assert rows["defragmented"]["fragments"] <= 2 * 4
    assert left_behind(tmp_path) == []


@pytest.mark.usefixtures("needs_root")
@pytest.mark.parametrize("tool", ["losetup", "mount"])
def test_an_interrupt_before_the_answer_of_a_tool_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    interrupted = []

    def run_and_interrupt(*words: str | Path) -> str:
        said = run_tool(*words)
        if words[0] == tool and not interrupted:
            interrupted.append(words)
            raise KeyboardInterrupt
        return said

    def use_one() -> None:
        with module.loop_device(tmp_path / "image", 64 * MIB) as device:
            run_tool("mke2fs", "-q", "-t", "ext4", device)
            with module.mounted(device, tmp_path / "mounted"):
                pass

    monkeypatch.setattr(module, "run_tool", run_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        use_one()
    assert interrupted
    assert left_behind(tmp_path) == []
    assert not (tmp_path / "mounted").exists()


@pytest.mark.usefixtures("needs_root")
def test_a_device_that_is_too_small_is_said(run: Callable, tmp_path: Path) -> None:
    words = ("--set", "file_system=ext4", *SMALL, "--set", f"size_bytes={128 * MIB}")
    with pytest.raises(UserError, match="`make_whole_files`: no space left") as raised:
        run("experiment", "run", "disk/fragments", "-o", tmp_path / "rec", *words)
    assert "device_bytes" in str(raised.value)
    assert left_behind(tmp_path) == []
    assert stated(tmp_path / "rec")["ended_by"] == "failed"


@pytest.mark.usefixtures("needs_root")
def test_a_disk_without_room_for_the_device_is_said(run: Callable, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="are free"):
        run("experiment", "run", "disk/fragments", "-o", tmp_path / "rec", "--set", f"device_bytes={1 << 50}")
    assert left_behind(tmp_path) == []


def test_without_root_nothing_is_made(run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UserError, match="needs root"):
        run("experiment", "run", "disk/fragments", "-o", tmp_path / "rec")
    assert not (tmp_path / "rec").exists()


def test_missing_programs_are_named_before_anything_is_made(
    run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    real = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, **path: None if "xfs" in name else real(name, **path))
    with pytest.raises(UserError, match=r"missing: mkfs\.xfs, xfs_fsr\n"):
        run("experiment", "run", "disk/fragments", "-o", tmp_path / "rec")
    assert not (tmp_path / "rec").exists()


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("pieces=1", "no parameter `pieces`"),
        ("piece_bytes=large", "`large` is not a number"),
        ("piece_bytes", "not PARAMETER=A,B"),
        ("piece_bytes=", "not PARAMETER=A,B"),
        ("file_system=ntfs", "`file_system` is 'ntfs' and should be one of ext4, xfs, btrfs"),
        ("files=0", "`files` is 0 and should be a number from 1 on"),
    ],
)
def test_wrong_values_are_refused(run: Callable, tmp_path: Path, setting: str, said: str) -> None:
    with pytest.raises(UserError, match=re.escape(said)):
        run("experiment", "run", "disk/fragments", "-o", tmp_path / "rec", "--set", setting)
    assert not (tmp_path / "rec").exists()


def test_other_peoples_experiments_want_trust_and_say_what_they_would_run(
    run: Callable, own: Callable, tmp_path: Path
) -> None:
    with pytest.raises(
        UserError, match=re.escape("oflag=direct status=none; done' sh 2 '{data}/big'")
    ) as refused:
        run("experiment", "run", own(WRITES), "-o", tmp_path / "rec")
    assert refused.value.code == "experiment/needs_trust"
    assert not (tmp_path / "rec").exists()


def test_a_recording_of_a_stranger_is_not_gone_on_with(run: Callable, own: Callable, tmp_path: Path) -> None:
    run("experiment", "run", own(f'{COMMAND}run = ["true", "{{how}}"]'), "-o", tmp_path / "rec", "--trust")
    with pytest.raises(UserError, match=r"\n  true a\n  true b\n") as refused:
        run("experiment", "resume", tmp_path / "rec")
    assert refused.value.code == "experiment/needs_trust"
    with pytest.raises(UserError, match="is not a recording of an experiment"):
        run("experiment", "resume", tmp_path)


BESIDE = """[[prepare]]
do = "write_files"
read = ["say.sh"]
files = { "more.txt" = "more" }
"""


@pytest.fixture
def beside(own: Callable, tmp_path: Path) -> Path:
    """An experiment whose script is in the folder next to its file."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "say.sh").write_text("grep -q more $(dirname $0)/more.txt\n")
    return own(BESIDE + COMMAND + 'run = ["sh", "{scratch}/say.sh", "{how}"]')


def test_files_beside_an_experiment_are_part_of_its_recording(
    run: Callable, beside: Path, tmp_path: Path
) -> None:
    run("experiment", "run", beside, "-o", tmp_path / "rec", "--trust")
    assert {row["rejected"] for row in runs_of(run, tmp_path / "rec")} == {False}
    shutil.rmtree(tmp_path / "own")
    run("experiment", "replay", tmp_path / "rec", "-o", tmp_path / "again", "--trust")
    kept = (tmp_path / "again" / "experiment" / "say.sh").read_text()
    assert kept == "grep -q more $(dirname $0)/more.txt\n"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none.sh", "`own/none.sh` cannot be read: No such file or directory"),
        ("link.sh", "`own/link.sh` cannot be read: Too many levels of symbolic links"),
        ("pipe.sh", "`pipe.sh` is not a plain file"),
        ("bytes.sh", "`bytes.sh` is not UTF-8 text"),
        ("large.sh", "`large.sh` is larger than 1 MiB"),
        ("../own.toml", "`../own.toml` is not a file of the folder own/ next to this one"),
    ],
)
def test_what_is_no_file_beside_an_experiment_is_named(
    run: Callable, beside: Path, tmp_path: Path, name: str, said: str
) -> None:
    folder = tmp_path / "own"
    (folder / "link.sh").symlink_to("say.sh")
    os.mkfifo(folder / "pipe.sh")
    (folder / "bytes.sh").write_bytes(b"\xff")
    (folder / "large.sh").write_bytes(bytes(MIB + 1))
    beside.write_text(beside.read_text().replace("say.sh", name, 1))
    with pytest.raises(UserError, match=re.escape(said)):
        run("experiment", "show", beside)


def test_a_folder_beside_an_experiment_is_no_link(run: Callable, beside: Path, tmp_path: Path) -> None:
    (tmp_path / "own").rename(tmp_path / "elsewhere")
    (tmp_path / "own").symlink_to("elsewhere")
    with pytest.raises(UserError, match="is not a file of the folder own/ next to this one"):
        run("experiment", "show", beside)


# The plan of a run in which nothing was chosen.
UNCHANGED: dict[str, Any] = {
    "command": "sysdock experiment run NAME", "id": "db/decision", "seed": 1, "set": [], "blocks": None, "busy": False, "explain": False,
}  # fmt: skip


def test_a_changed_file_beside_a_shipped_experiment_wants_trust(tmp_path: Path, library: Library) -> None:
    experiment = library.experiment("db/decision")
    assert sorted(files_of(experiment)) == sorted(
        path.name for path in experiment.path.with_suffix("").iterdir()
    )
    (tmp_path / "experiment").mkdir()
    shutil.copy(experiment.path, tmp_path / "experiment.toml")
    for name, text in files_of(experiment).items():
        (tmp_path / "experiment" / name).write_text(text)

    def refused() -> bool:
        kept = parse_experiment(tmp_path / "experiment.toml", "db/decision")
        return own_experiment(kept, UNCHANGED, library) is None

    assert not refused()
    (tmp_path / "experiment" / "check.py").write_text("print()")
    assert refused()


def test_experiments_are_listed_and_described(run: Callable) -> None:
    listed = json.loads(run("experiment", "list", "--format", "json").stdout)
    assert {"disk/comb", "disk/fragments"} <= {row["id"] for row in listed}
    shown = run("experiment", "show", "disk/fragments").stdout
    assert "piece_bytes = 4096, 16384, 65536, 262144 B" in shown
    assert "12 cases, 10 blocks" in shown
    with pytest.raises(UserError, match="did you mean disk/fragments"):
        run("experiment", "show", "fragments")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("blocks = 8", "block = 8", "unknown key `block`"),
        ("device_bytes = 67108864", "", "needs `device_bytes`"),
        ("device_bytes = 67108864", 'device_bytes = "large"', "should be a number"),
        (
            "make_file_system",
            "make_file_sistem",
            "no preparation `make_file_sistem` (did you mean make_file_system",
        ),
        ("[[prepare]]", "[[steps]]", "unknown key `steps`"),
        ('times = "2"', 'times = "3"', "`3` is not a level of times"),
        ("{times}", "{count}", "nothing gives `{count}` a value"),
        ('primary = "device_write_bytes"', 'primary = "device_bytes"', "names no metric: device_bytes"),
        ('baseline = "once"', 'baseline = "twin"', "`baseline` is 'twin'"),
        (
            "[factors.times]",
            '[factors.times]\nsetting = "sysctll:vm.swappiness"',
            "no kind of settings `sysctll`",
        ),
        ('"rm", "-f", "{data}/big"', "", "`after` is not a list of words"),
        ("[claim]", "[claim", "not TOML"),
    ],
)
def test_check_finds_what_is_wrong_in_a_file(
    own: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, said: str
) -> None:
    assert old in WRITES
    result = checked(own, tmp_path, monkeypatch, WRITES.replace(old, new))
    assert said in result.stdout
    assert "0 passed, 1 failed" in result.stdout


def test_check_takes_an_experiment_that_is_right(
    own: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "1 passed, 0 failed" in checked(own, tmp_path, monkeypatch, WRITES).stdout


def checked(own: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> Result:
    """`sysdock check` of an experiment in a folder of know-how."""
    pack = tmp_path / "pack"
    (pack / "experiments").mkdir(parents=True)
    for name in ("analyses", "tables"):
        (pack / name).symlink_to(KNOWHOW / name)
    shutil.copy(own(body), pack / "experiments" / "own.toml")
    monkeypatch.setenv("SYSDOCK_KNOWHOW", str(pack))
    return CliRunner().invoke(sysdock, ["check", str(pack / "experiments")])


def test_every_preparation_says_what_it_does() -> None:
    assert all(preparation.text for preparation in PREPARATIONS.values())


def test_commands_are_compared_without_a_file(run: Callable, tmp_path: Path) -> None:
    words = ("experiment", "compare", "--blocks", 8, "--seed", 1, "--format", "json", "-o", tmp_path / "rec")
    done = run(*words, "--", "true", "sleep 0.3")
    # Before it begins, and when the warm-up has shown how long a run takes.
    assert "cases: 1, scenarios: 2, runs: 18; ends after 60 minutes at the latest" in done.stderr
    assert re.search(r"a run takes .*: about .* for 8 blocks", done.stderr)
    answer = json.loads(done.stdout)
    primary = next(row for row in answer["verdicts"] if row["is_primary"])
    assert (primary["verdict"], primary["scenario"], primary["blocks"]) == ("changed", "B", 8)
    assert primary["ratio"] > 2
    assert [len(times) for times in answer["elapsed_s"].values()] == [8, 8]
    assert "0.3" in (tmp_path / "rec" / "experiment.toml").read_text()
    again = CliRunner().invoke(
        sysdock, ["experiment", "compare", "--blocks", "8", "--fail-on", "changed", "true", "sleep 0.3"]
    )
    assert again.exit_code == 1
    with pytest.raises(UserError, match="two commands or more"):
        run("experiment", "compare", "true")


NOISY = """
[claim]
primary = "n"
[plan]
blocks = 9
pilot = 8
aa = false
dry = 0
[reject]
foreign_cpu_percent = false
steal_percent = false
[factors.how]
levels = ["steady", "steady too", "wild"]
[scenarios.a]
[scenarios.b]
how = "steady too"
[scenarios.c]
how = "wild"
[[workloads]]
name = "count"
run = ["sh", "-c", "echo >> $0/$1; test $1 = wild && echo n = $(($(wc -l < $0/wild) % 2 * 1500 + 500)) || echo n = 1000", "{scratch}", "{how}"]
[workloads.measures.n]
pattern = '^n = ([0-9.]+)'
better = "lower"
text = "w"
text_ja = "w"
"""


@pytest.mark.more
def test_a_case_is_given_up_where_every_scenario_is_too_noisy(
    run: Callable, own: Callable, tmp_path: Path
) -> None:
    run("experiment", "run", own(NOISY), "-o", tmp_path / "one", "--trust")
    assert max(row["block"] for row in runs_of(run, tmp_path / "one")) == 9
    body = NOISY.replace('[scenarios.b]\nhow = "steady too"\n', "")
    done = run("experiment", "run", own(body), "-o", tmp_path / "all", "--trust")
    assert max(row["block"] for row in runs_of(run, tmp_path / "all")) == 8
    assert "the machine is too noisy: 9 blocks would not show a change of 10 %" in done.stderr
    # A change that is larger than the noise is worth the rest of the blocks.
    large = body.replace("% 2 * 1500 + 500", "% 2 * 1500 + 90000")
    run("experiment", "run", own(large), "-o", tmp_path / "large", "--trust")
    assert max(row["block"] for row in runs_of(run, tmp_path / "large")) == 9


def test_a_command_that_fails_is_no_measurement(run: Callable) -> None:
    with pytest.raises(UserError, match="exit status 3"):
        run("experiment", "compare", "--blocks", 8, "true", "exit 3")


def test_requests_are_counted_as_by_a_walk_over_the_blocks() -> None:
    numbers = random.Random(6)
    for _ in range(200):
        extents, at = [], 0
        for _ in range(numbers.randrange(1, 12)):
            at += numbers.choice((0, 0, 0, 3))
            length = numbers.randrange(1, 40)
            place = numbers.choice((at + 1000, numbers.randrange(10_000)))
            extents.append((7, at, place, length))
            at += length
        ahead, largest = numbers.choice((8, 16, 640)), numbers.choice((4, 5, 128))
        assert content_requests(extents, ahead, largest) == walked(extents, ahead, largest)


def walked(extents: list[tuple[int, int, int, int]], ahead: int, largest: int) -> int:
    """Block by block: a new request where the block is not the next, a window begins, or the request is full."""
    blocks = [(begin + i, place + i) for _, begin, place, length in extents for i in range(length)]
    requests = held = 0
    for number, (block, place) in enumerate(blocks):
        follows = number and blocks[number - 1] == (block - 1, place - 1) and block % ahead
        held = held + 1 if follows and held < largest else 1
        requests += held == 1
    return requests
