"""Experiments that are really run, on small file systems: what they measure, and what a stopped one leaves."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from stated import stated
from sysdock.cli import sysdock
from sysdock.errors import UserError
from sysdock.experiment import loop_device as module
from sysdock.experiment.prediction import content_requests
from sysdock.experiment.tools import run_tool
from sysdock.experiment.workload import WORKLOADS
from sysdock.recording import Recording

KNOWHOW = Path(__file__).resolve().parents[3] / "knowhow"
MIB = 1 << 20
SMALL = ("--set", "files=4", "--set", f"size_bytes={4 * MIB}", "--set", f"device_bytes={384 * MIB}")


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


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Makes an experiment of a pack from its parameters and steps, which are TOML; gives its name."""
    pack = tmp_path / "pack"
    (pack / "experiments").mkdir(parents=True)
    (pack / "analyses").symlink_to(KNOWHOW / "analyses")
    monkeypatch.setenv("SYSDOCK_KNOWHOW", str(pack))

    def make(body: str, head: str = "") -> str:
        lines = [f'{key} = "words"' for key in ("title", "title_ja", "question", "question_ja")]
        text = "\n".join([*lines, 'analysis = "disk/cold_reads"', "rounds = 1", head, body])
        text = re.sub(r"^(values|workload) = (.*)$", r'\1 = \2\ntext = "w"\ntext_ja = "w"', text, flags=re.M)
        (pack / "experiments" / "own.toml").write_text(text)
        return "own"

    return make


def results(run: Callable, folder: Path) -> list[dict]:
    """Rows of the analysis of cold reads."""
    return json.loads(run("show", folder, "disk/cold_reads", "--format", "json").stdout)


def left_behind(folder: Path) -> list[str]:
    """Mounts and loop devices of what was made in a folder."""
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    loops = subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=True).stdout
    return [line for line in [*mounts, *loops.splitlines()] if str(folder) in line]


READS = """
[parameters.file_system]
values = ["ext4", "xfs", "btrfs"]
[parameters.piece_bytes]
values = [4096, 262144]
[[steps]]
workload = "make_file_system"
device_bytes = 402653184
[[steps]]
workload = "make_broken_files"
mode = "interleave"
files = 8
size_bytes = 8388608
[[steps]]
workload = "read_cold"
state = "before"
subjects = ["broken"]
"""


@pytest.mark.usefixtures("needs_root")
def test_a_device_gets_as_many_requests_as_predicted(run: Callable, own: Callable, tmp_path: Path) -> None:
    run("experiment", "run", own(READS), "-o", tmp_path / "rec", "--trust")
    rows = results(run, tmp_path / "rec")
    assert [(row["file_system"], row["piece_bytes"]) for row in rows] == [
        (kind, piece) for kind in ("ext4", "xfs", "btrfs") for piece in (4096, 262144)
    ]
    for row in rows:
        assert row["fragments"] == 64 * MIB // row["piece_bytes"]
        assert row["predicted_requests"] == pytest.approx(row["requests"], rel=0.03), row
        assert abs(row["deviation_percent"]) <= 3


@pytest.mark.usefixtures("needs_root")
def test_what_is_read_must_be_there(run: Callable, own: Callable, tmp_path: Path) -> None:
    name = own(READS.replace('subjects = ["broken"]', 'subjects = ["whole"]'))
    settings = ("--set", "file_system=ext4", "--set", "piece_bytes=262144")
    with pytest.raises(UserError, match="the scan has no file there"):
        run("experiment", "run", name, "-o", tmp_path / "rec", "--trust", *settings)
    assert left_behind(tmp_path) == []


@pytest.mark.usefixtures("needs_root")
def test_the_folder_may_be_named_from_here_and_by_a_link(
    run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path / "link")
    words = ("--rounds", 1, "--set", "file_system=ext4", "--set", "piece_bytes=65536")
    run("experiment", "run", "disk/fragments", "-o", "rec", *words, *SMALL)
    (before, *_) = [row for row in results(run, Path("rec")) if row["subject"] == "broken"]
    assert before["fragments"] == 4 * 64
    assert before["predicted_requests"] == pytest.approx(before["requests"], rel=0.03)
    assert left_behind(tmp_path) == []


@pytest.mark.usefixtures("needs_root")
def test_what_comes_with_sysdock_measures_before_and_after_defragmenting(
    run: Callable, tmp_path: Path
) -> None:
    words = ("--rounds", 2, "--set", "piece_bytes=65536", *SMALL)
    done = run("experiment", "run", "disk/fragments", "-o", tmp_path / "rec", *words)
    rows = {(row["file_system"], row["state"], row["subject"]): row for row in results(run, tmp_path / "rec")}
    assert len(rows) == 3 * 2 * 2
    for kind in ("ext4", "xfs", "btrfs"):
        before, after = rows[kind, "before", "broken"], rows[kind, "after", "broken"]
        assert before["fragments"] == 4 * 64
        assert before["predicted_requests"] == pytest.approx(before["requests"], rel=0.03)
        assert after["fragments"] <= 2 * 4
        assert after["requests"] < before["requests"] / 2
        assert rows[kind, "before", "whole"]["times_control"] == 1
    assert {row["rounds"] for row in rows.values()} == {2}
    report = (tmp_path / "rec" / "report.md").read_text()
    assert "read_ahead_kb" in report
    assert "# 順番に読むプログラム" in report
    assert f"sysdock experiment run disk/fragments -o {tmp_path / 'rec'} --rounds 2" in report
    assert "ext4" in done.stdout
    assert left_behind(tmp_path) == []
    assert list((tmp_path / "rec").rglob("image")) == []
    # Each scan is a recording of its own: a map shows where the pieces lay.
    assert (tmp_path / "rec" / "scans" / "case-003-after" / "recording.json").exists()
    assert "kind         experiment\n" in run("info", tmp_path / "rec").stdout
    assert Recording.open(tmp_path / "rec" / "scans" / "case-003-after").families == {"scan"}


@pytest.mark.usefixtures("needs_root")
def test_holes_of_a_comb_are_read_as_predicted(run: Callable, tmp_path: Path) -> None:
    words = ("--rounds", 1, "--keep", "--set", "file_system=xfs", "--set", "piece_bytes=65536", *SMALL)
    run("experiment", "run", "disk/comb", "-o", tmp_path / "rec", *words)
    rows = {(row["state"], row["subject"]): row for row in results(run, tmp_path / "rec")}
    before = rows["before", "broken"]
    assert before["fragments"] == pytest.approx(4 * 64, rel=0.01)
    assert before["predicted_requests"] == pytest.approx(before["requests"], rel=0.03)
    assert rows["after", "broken"]["fragments"] <= 2 * 4
    assert left_behind(tmp_path) == []
    assert len(list((tmp_path / "rec").rglob("image"))) == 1


@pytest.mark.usefixtures("needs_root")
def test_an_interrupted_run_takes_down_what_it_made_and_keeps_what_it_measured(
    run: Callable, tmp_path: Path
) -> None:
    words = ["-o", str(tmp_path / "rec"), "--rounds", "1", "--set", "piece_bytes=65536", *SMALL]
    command = [sys.executable, "-m", "sysdock", "experiment", "run", "disk/fragments", *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    for line in process.stderr:
        if "case 2 of 3" in line:
            process.send_signal(signal.SIGINT)
            break
    said = process.stderr.read()
    assert process.wait(timeout=60) == 130
    assert left_behind(tmp_path) == []
    assert "what was measured until then" in said
    manifest = stated(tmp_path / "rec")
    assert (manifest["complete"], manifest["ended_by"]) == (False, "interrupted")
    assert {row["file_system"] for row in results(run, tmp_path / "rec")} >= {"ext4"}
    assert "**Not complete**" in (tmp_path / "rec" / "report.md").read_text()


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
    with pytest.raises(UserError, match=r"missing: mkfs\.xfs, xfs_fsr\n") as raised:
        run("experiment", "run", "disk/fragments", "-o", tmp_path / "rec")
    assert "xfsprogs" in str(raised.value)
    assert not (tmp_path / "rec").exists()


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("pieces=1", "no parameter `pieces`"),
        ("piece_bytes=large", "`large` is no number"),
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


def test_other_peoples_experiments_want_trust(run: Callable, own: Callable, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not come with sysdock"):
        run("experiment", "run", own(READS), "-o", tmp_path / "rec")
    assert not (tmp_path / "rec").exists()


def test_experiments_are_listed_and_described(run: Callable) -> None:
    listed = json.loads(run("experiment", "list", "--format", "json").stdout)
    assert [row["id"] for row in listed] == ["disk/comb", "disk/fragments"]
    shown = run("experiment", "show", "disk/fragments").stdout
    assert "piece_bytes = 4096, 16384, 65536, 262144 B" in shown
    assert "12 cases, 5 rounds" in shown
    with pytest.raises(UserError, match="did you mean disk/fragments"):
        run("experiment", "show", "fragments")


@pytest.mark.parametrize(
    ("head", "change", "said"),
    [
        ("round = 2", None, "unknown key `round`"),
        ("", ("[parameters.piece_bytes]", "[parameters.pieces_bytes]"), "needs `piece_bytes`"),
        ("", ("files = 8", "file = 8"), "takes no `file`"),
        ("", ("read_cold", "read_warm"), "no workload `read_warm` (did you mean read_cold"),
        ("", ("[4096, 262144]", '[4096, "large"]'), "no list of numbers or of texts"),
        ("", ('["broken"]', "[]"), "should be a list of texts"),
        ("", ("[[steps]]", "[[stages]]"), "unknown key `stages`"),
        ("rounds = 2", None, "not TOML"),
    ],
)
def test_check_finds_what_is_wrong_in_a_file(
    own: Callable, tmp_path: Path, head: str, change: tuple[str, str] | None, said: str
) -> None:
    own(READS.replace(*change) if change else READS, head)
    result = CliRunner().invoke(sysdock, ["check", str(tmp_path / "pack" / "experiments")])
    assert said in result.stdout
    assert "0 passed, 1 failed" in result.stdout


def test_check_takes_an_experiment_that_is_right(own: Callable, tmp_path: Path) -> None:
    own(READS)
    result = CliRunner().invoke(sysdock, ["check", str(tmp_path / "pack" / "experiments")])
    assert "1 passed, 0 failed" in result.stdout


def test_every_workload_says_what_it_does() -> None:
    assert all(workload.text for workload in WORKLOADS.values())


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
