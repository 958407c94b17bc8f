"""`sysdock run --scan DIR`: the calls of a command and where files lie, in one recording."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SYSDOCK = Path(sys.executable).with_name("sysdock")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder of two files."""
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / name).write_bytes(bytes(10_000))
    subprocess.run(["sync", "-f", folder], check=True)
    return folder


def run(out: Path, scan: Path, *command: str) -> subprocess.CompletedProcess:
    words = [SYSDOCK, "run", "-o", out, "--scan", scan, "--", *command]
    return subprocess.run(words, capture_output=True, text=True, timeout=600)


def test_both_are_in_one_recording(files: Path, tmp_path: Path, query: Callable) -> None:
    out = tmp_path / "rec"
    done = run(out, files, "cat", str(files / "a"))
    assert done.returncode == 0, done.stderr
    manifest = json.loads((out / "recording.json").read_text())
    calls, scan = manifest["captures"]
    assert (calls["unit"] in ("events", "lines"), scan["recorder"], scan["unit"]) == (True, "disk", "files")
    assert (manifest["complete"], scan["total"], scan["understood"]) == (True, 3, 3)
    # The times of the scan lie behind those of the command, on the same clock.
    [(last,)] = query(out, "SELECT max(ts_ns) FROM calls")
    assert last <= manifest["started_ns"] + manifest["duration_ns"]
    # One SELECT over both: the file that was read, and its pieces.
    found = query(
        out,
        "SELECT DISTINCT d.path, i.size_bytes FROM calls AS c JOIN paths AS p USING (path_id) "
        "JOIN paths AS d ON d.path = p.path JOIN inodes AS i ON i.path_id = d.path_id WHERE c.call = 'read'",
    )
    assert found == [(str(files / "a"), 10_000)]
    # Each keeps what it says of the machine, and no id of a path is used twice.
    [(rows, devices)] = query(
        out, "SELECT count(*), count(*) FILTER (WHERE section = 'device') FROM environment"
    )
    assert rows > 20
    assert devices > 0
    [(paths, ids)] = query(out, "SELECT count(*), count(DISTINCT path_id) FROM paths")
    assert paths == ids
    assert "File system" in done.stderr


def test_without_the_scan_the_calls_are_the_same(files: Path, tmp_path: Path, query: Callable) -> None:
    counted = []
    for name, options in (("plain", []), ("both", ["--scan", str(files)])):
        out = tmp_path / name
        words = [SYSDOCK, "run", "-o", out, *options, "--", "cat", files / "a"]
        subprocess.run(words, capture_output=True, check=True, timeout=600)
        counted.append(query(out, "SELECT call, count(*) FROM calls GROUP BY call ORDER BY call"))
    assert counted[0] == counted[1]


def test_what_is_not_there_is_refused_before_the_command_runs(tmp_path: Path) -> None:
    done = run(tmp_path / "rec", tmp_path / "gone", "touch", str(tmp_path / "ran"))
    assert done.returncode == 2
    assert "no such file or folder" in done.stderr
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "rec").exists()


def test_a_scan_is_added_to_a_complete_recording_only(native: Path, files: Path, tmp_path: Path) -> None:
    def scan(out: Path) -> subprocess.CompletedProcess:
        words = [native, "disk", "scan", "--into", "-o", out, files]
        return subprocess.run(words, capture_output=True, text=True)

    out = tmp_path / "rec"
    subprocess.run([native, "disk", "scan", "-o", out, files], capture_output=True, check=True)
    before = (out / "recording.json").read_bytes()
    broken = tmp_path / "broken"
    shutil.copytree(out, broken)
    manifest = json.loads(before)
    manifest["complete"] = False
    (broken / "recording.json").write_text(json.dumps(manifest))
    done = scan(broken)
    assert done.returncode == 2
    assert "not a complete recording" in done.stderr
    # What cannot be scanned leaves the recording as it was.
    words = [native, "disk", "scan", "--into", "-o", out, tmp_path / "gone"]
    assert subprocess.run(words, capture_output=True).returncode == 2
    assert (out / "recording.json").read_bytes() == before
    assert scan(out).returncode == 0
    assert len(json.loads((out / "recording.json").read_text())["captures"]) == 2
