"""What can go wrong with a load: each is an error with a hint, or a status of the row, and nothing is left behind."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hung_fuse import hung
from load_runs import command, left, load
from sysdock.recording import Recording
from waiting import children, wait_for

sys.path.insert(0, str(Path(__file__).parents[1] / "disk"))
from loops import needs_root
from sysdock.sentences import facts_of, say

NOBODY = 65534


@contextmanager
def tmpfs(folder: Path, options: str) -> Iterator[Path]:
    needs_root()
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@contextmanager
def open_to_all() -> Iterator[Path]:
    """A folder that everybody may write: pytest's own are closed to others."""
    with tempfile.TemporaryDirectory(prefix="sysdock-load-") as name:
        Path(name).chmod(0o777)
        yield Path(name)


def said(note: list[dict[str, Any]] | None) -> str:
    """The note of a row as the generator prints it, in words."""
    return say(facts_of(note), "en") if note else ""


def test_a_directory_that_is_none(tmp_path: Path):
    for path, word in ((tmp_path / "missing", "No such file"), (Path("/etc/passwd"), "not a directory")):
        ran = load(path, "--item", "control", "--for", "1s")
        assert (ran.status, ran.rows) == (2, [])
        assert word in ran.said
        assert "hint: " in ran.said


def test_steps_that_make_no_sense(tmp_path: Path):
    for options, word in (
        (["--item", "log"], "needs a time"),
        (["--item", "transfer", "--operations", "append"], "has no operation append"),
        (["--item", "transfer", "--direct", "--length", "1000"], "multiple of 512"),
        (["--item", "transfer", "--processes", "0"], "from 1 to"),
        (["--item", "transfer", "--length", "4XB"], "not a size"),
        (["--item", "dance"], "unknown variant"),
    ):
        ran = load(tmp_path, *options)
        assert ran.status == 2, ran.said
        assert word in ran.said, ran.said
    assert left(tmp_path) == []


def test_plans_that_are_none(tmp_path: Path):
    (tmp_path / "work").mkdir()
    for text, word in (
        ("", "EOF"),
        ("{", "EOF"),
        ('{"steps": []}', "no steps"),
        ('{"steps": [{"item": "transfer", "lenght_bytes": 4096}]}', "unknown field"),
        ('{"steps": [{"item": "transfer", "processes": -1}]}', "invalid value"),
        ('{"steps":' * 100_000, "plan: "),
    ):
        (tmp_path / "plan").write_text(text)
        ran = load(tmp_path / "work", "--plan", str(tmp_path / "plan"))
        assert ran.status == 2, ran.said
        assert word in ran.said, ran.said
    assert left(tmp_path / "work") == []


def test_no_rights():
    needs_root()
    with open_to_all() as folder:
        folder.chmod(0o755)
        ran = load(folder, "--item", "control", "--for", "1s", user=NOBODY)
    assert ran.status == 2
    assert "ermission denied" in ran.said
    assert "may write" in ran.said


def test_a_read_only_mount(tmp_path: Path):
    with tmpfs(tmp_path / "mount", "ro,size=1m") as point:
        ran = load(point, "--item", "control", "--for", "1s")
    assert ran.status == 2
    assert "read-only" in ran.said.lower()


def test_no_room_before_and_in_the_middle(tmp_path: Path):
    with tmpfs(tmp_path / "mount", "size=8m,nr_inodes=60") as point:
        before = load(point, "--item", "transfer", "--size", "64MiB")
        assert before.status == 2
        assert [row["status"] for row in before.rows] == ["full", "full"]
        inodes = load(point, "--item", "metadata", "--operations", "create", "--files", "100")
        assert inodes.only()["status"] == "full"
        assert 0 < inodes.only()["operations"] < 60
        assert left(point) == []


@pytest.mark.parametrize(
    ("call", "error", "statuses"),
    [
        ("pwrite64", "ENOSPC", ["full"]),
        ("pwrite64", "EDQUOT", ["full"]),
        ("pread64", "EIO", ["measured", "failed", "too_short", "no_overlap"]),
        ("pread64", "ENODEV", ["measured", "failed", "too_short", "no_overlap"]),
        ("fsync", "EIO", ["failed", "measured"]),
    ],
)
def test_a_device_that_fails(tmp_path: Path, call: str, error: str, statuses: list[str]):
    """Calls of workers fail as strace makes them fail; those that read are preceded by those of the loader."""
    work = tmp_path / "work"
    work.mkdir()
    when = 1 if call == "fsync" else 10
    inject = ["-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={when}+"]
    strace = ["strace", "-f", "-qq", "-o", "/dev/null", *inject]
    options = ["--item", "transfer", "--length", "64KiB", "--size", "4MiB", "--processes", "2"]
    ran = load(work, *options, before=strace)
    wrong = [row for row in ran.rows if row["errors"]]
    assert wrong, ran.rows
    assert all(row["status"] in statuses for row in wrong), ran.rows
    assert all(os.strerror(getattr(errno, error)).lower() in said(row["note"]) for row in wrong), wrong
    assert left(work) == []


def test_a_server_that_hangs(tmp_path: Path):
    """A FUSE file system whose server never answers."""
    point = tmp_path / "fuse"
    point.mkdir()
    with hung(point):
        ran = load(point, "--item", "control", "--for", "1s", "--patience", "1s")
    assert ran.status == 2, ran.said
    assert "does not answer" in ran.said, ran.said


def test_a_worker_that_is_killed(tmp_path: Path):
    words = command(tmp_path, "--item", "random_read", "--processes", "3", "--for", "3s", "--size", "3MiB")
    with subprocess.Popen([*words, "--rows"], stdout=subprocess.PIPE, text=True) as run:
        wait_for(lambda: len(children(run.pid)) == 3, "the workers")
        time.sleep(1.0)
        os.kill(children(run.pid)[1], signal.SIGKILL)
        out, _ = run.communicate(timeout=600)
    row = json.loads(out)
    assert (row["status"], run.returncode) == ("failed", 2)
    assert "1 of 3 workers killed by signal 9" in said(row["note"])
    assert row["operations"] > 0
    assert left(tmp_path) == []


def test_a_worker_that_hangs_leaves_a_row_for_each_operation(tmp_path: Path):
    options = ["--item", "metadata", "--operations", "stat,open,remove", "--files", "20", "--for", "60s"]
    # Nobody else uses its device, which would look like progress.
    with tmpfs(tmp_path / "mount", "size=1m") as point:
        words = command(point, *options, "--patience", "2s", "--rows")
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as run:
            wait_for(lambda: list(point.glob(".sysdock-load-*/d0/f0-19")), "the last file")
            [worker] = children(run.pid)
            os.kill(worker, signal.SIGSTOP)
            out, _ = run.communicate(timeout=600)
        assert left(point) == []
    first, *others = [json.loads(line) for line in out.splitlines()]
    assert (first["operation"], first["status"]) == ("stat", "failed")
    assert "given up" in said(first["note"])
    assert [(row["operation"], row["status"], row["operations"]) for row in others] == [
        ("open", "skipped", 0),
        ("remove", "skipped", 0),
    ]
    assert [row["note"] for row in others] == [[{"code": "load/after_given_up"}]] * 2


def test_more_workers_than_may_be_started():
    needs_root()

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NPROC, (100, 100))

    options = ["--item", "control", "--for", "1s", "--processes", "1000"]
    with open_to_all() as folder:
        ran = load(folder, *options, user=NOBODY, preexec_fn=few)
        assert left(folder) == []
    assert ran.only()["status"] == "failed"
    assert "of 1,000 processes could be started" in said(ran.only()["note"])


def test_files_of_the_same_names_stay(tmp_path: Path):
    mine = tmp_path / ".sysdock-load-mine"
    mine.mkdir()
    for path in (mine / "data", tmp_path / "data", tmp_path / "w0", tmp_path / "owner"):
        path.write_text("mine")
    (tmp_path / "d0").mkdir()
    before = left(tmp_path)
    ran = load(tmp_path, "--item", "transfer", "--size", "1MiB")
    assert ran.status == 0
    assert f"{mine} stays" in ran.said
    assert left(tmp_path) == before
    assert (mine / "data").read_text() == "mine"


def test_two_at_once(tmp_path: Path):
    words = command(tmp_path, "--item", "random_read", "--for", "1s", "--size", "4MiB", "--rows")
    runs = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for run in runs:
        row = json.loads(run.communicate(timeout=600)[0])
        assert run.returncode == 0
        assert row["errors"] == 0
        assert row["operations"] > 0
    assert left(tmp_path) == []


def test_what_a_killed_run_leaves_is_removed_by_the_next(tmp_path: Path):
    words = command(tmp_path, "--item", "random_read", "--processes", "2", "--for", "60s", "--size", "4MiB")
    with subprocess.Popen([*words, "--rows"], stdout=subprocess.DEVNULL) as run:
        wait_for(lambda: len(children(run.pid)) == 2 and left(tmp_path), "the workers")
        workers = children(run.pid)
        run.kill()
    assert len(workers) == 2
    assert left(tmp_path) != []
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}/exe") for pid in workers), "the end of the workers")
    assert load(tmp_path, "--item", "control", "--for", "100ms").status == 0
    assert left(tmp_path) == []


def test_an_interrupt_keeps_what_is_done(tmp_path: Path):
    (tmp_path / "work").mkdir()
    steps = [{"item": "control", "time_ns": 200_000_000}, {"item": "random_read", "time_ns": 60_000_000_000}]
    (tmp_path / "plan").write_text(json.dumps({"steps": steps * 2}))
    words = command(tmp_path / "work", "--plan", str(tmp_path / "plan"), "-o", str(tmp_path / "rec"))
    with subprocess.Popen(words) as run:
        wait_for(lambda: list((tmp_path / "work").glob(".sysdock-load-*/*")), "the file of the second step")
        time.sleep(2.0)
        run.send_signal(signal.SIGINT)
        assert run.wait(timeout=600) == 130
    assert left(tmp_path / "work") == []
    recording = Recording.open(tmp_path / "rec")
    assert not recording.manifest["complete"]
    assert recording.ended_by == "interrupted"
    assert recording.rows("load_results") == 2


def test_a_recording_that_is_there_is_not_overwritten(tmp_path: Path):
    (tmp_path / "rec").mkdir()
    (tmp_path / "rec" / "mine").write_text("mine")
    ran = load(tmp_path, "--item", "control", "--for", "1s", "-o", str(tmp_path / "rec"))
    assert ran.status == 2
    assert left(tmp_path / "rec") == ["mine"]
