"""The same steps by fio: real runs, what is left behind by one that was killed, and mistakes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from load_runs import left, load
from sysdock.health.fio_engine import commands

# What fio has of each item.
OPERATIONS = {
    "transfer": ["write", "read"],
    "log": ["append"],
    "random_read": ["read"],
    "depth": ["read"],
    "mmap": ["write", "read"],
    "metadata": ["create", "stat", "remove"],
    "random_mix": [],
    "control": [],
}


@pytest.fixture
def fio() -> None:
    """Skips where there is no fio."""
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")


def bench(
    item: str, folder: Path, *options: str, path: str | None = None
) -> subprocess.CompletedProcess[str]:
    words = [
        sys.executable,
        "-m",
        "sysdock",
        "bench",
        item,
        str(folder),
        "--format",
        "json",
        "--engine",
        "fio",
    ]
    environment = {**os.environ, **({"PATH": path} if path is not None else {})}
    return subprocess.run(
        [*words, *options], capture_output=True, text=True, timeout=600, env=environment, check=False
    )


@pytest.mark.parametrize("item", OPERATIONS)
def test_rows_of_both_stand_beside_each_other(fio: None, item: str, tmp_path: Path) -> None:
    options = ["--size", "8MiB", "--length", "64KiB", "--for", "300ms", "--processes", "2", "--files", "50"]
    done = bench(item, tmp_path, *options)
    assert done.returncode == 0, done.stderr
    assert "fio: " not in done.stderr
    rows = json.loads(done.stdout)
    theirs = [row for row in rows if row["engine"] == "fio"]
    assert [row["operation"] for row in theirs] == OPERATIONS[item]
    assert [row["result_id"] for row in rows] == list(range(1, len(rows) + 1))
    for row in theirs:
        own = next(each for each in rows if each["operation"] == row["operation"] and each["engine"] != "fio")
        settings = ("item", "layout", "processes", "sync", "length_bytes", "direct")
        assert [row[name] for name in settings] == [own[name] for name in settings]
        assert row["operations"] > 0
        assert row["errors"] == 0
        # 50 files of each process, whatever the length of a request, or as many as a busy machine makes in the time.
        took_s = row["operations"] / row["operations_per_s"]
        assert item != "metadata" or row["operations"] == 100 or (row["operations"] < 100 and took_s > 0.2)
    assert left(tmp_path) == []


def test_what_fio_does_not_have_it_is_not_asked_for(tmp_path: Path) -> None:
    step = {"item": "metadata", "operations": ["create", "rename"]}
    assert [operation for operation, _ in commands(step, tmp_path)] == ["create"]


def test_files_of_a_killed_fio_are_removed_by_the_next_load(tmp_path: Path) -> None:
    """The folder is made in Python and removed in Rust: both must mean the same by its name and its owner."""
    program = (
        "import os, pathlib, signal, sys\n"
        "from sysdock.health import fio_engine\n"
        "with fio_engine._folder(pathlib.Path(sys.argv[1])) as folder:\n"
        "    (folder / 'w0').write_bytes(b'x')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(left(tmp_path)) == 1
    ran = load(tmp_path, "--item", "control", "--for", "100ms")
    assert ran.status == 0, ran.said
    assert "stays" not in ran.said
    assert left(tmp_path) == []


def test_no_fio(tmp_path: Path) -> None:
    done = bench("control", tmp_path, "--for", "100ms", path=str(tmp_path))
    assert done.returncode == 2
    assert "fio was not found" in done.stderr
    assert "hint: install it" in done.stderr
