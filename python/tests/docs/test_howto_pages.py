"""The how-to pages for recorders and experiments are followed: their files, then their commands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BIN = Path(sys.executable).parent


def follow(page: str, folder: Path, knowhow: Path) -> dict[str, str]:
    """Writes the files of a page, those of know-how into a copy of ours, and runs its commands; what each printed."""
    text = (ROOT / "docs" / "howto" / page).read_text("utf-8")
    shutil.copytree(ROOT / "knowhow", knowhow)
    for name, content in re.findall(
        r"\*\*([^*]+)\*\*:\n\n```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, "utf-8")
    [console] = re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "SYSDOCK_KNOWHOW": str(knowhow)}
    said = {}
    for command in re.findall(r"^\$ (.+)$", console, re.MULTILINE):
        done = subprocess.run(
            command, shell=True, cwd=folder, capture_output=True, text=True, env=environment
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        said[command] = done.stdout + done.stderr
    return said


def test_a_recorder_needs_nothing_but_its_folder(tmp_path: Path) -> None:
    # Without its definition first: the page writes that into a folder of its own.
    said = follow("add-a-recorder.md", tmp_path, tmp_path / "ours")
    info = next(text for command, text in said.items() if "info" in command)
    assert "kind         loadavg" in info
    assert "samples      5 of 5 understood (100 %)" in info
    query = next(text for command, text in said.items() if "query" in command)
    assert re.search(r"samples\s+most", query)
    assert (tmp_path / "out" / "loads.csv").exists()
    assert "<code>loads</code>" in (tmp_path / "rec" / "report.html").read_text("utf-8")
    # With it, the table is one of those that are known.
    shutil.copy(tmp_path / "knowhow" / "tables" / "loads.toml", tmp_path / "ours" / "tables" / "loads.toml")
    environment = {**os.environ, "SYSDOCK_KNOWHOW": str(tmp_path / "ours")}
    words = [BIN / "sysdock", "list", "tables"]
    listed = subprocess.run(words, capture_output=True, text=True, env=environment, check=True).stdout
    assert "One row per sample of the system's load." in listed


def test_an_experiment_is_one_file(tmp_path: Path) -> None:
    knowhow = tmp_path / "knowhow"
    said = follow("add-an-experiment.md", tmp_path, knowhow)
    checked, listed, planned = said.values()
    assert "1 passed" in checked
    assert "disk/direct_writes" in listed
    assert "cases: 2; scenarios: large, A/A, small (baseline: large)" in planned
    assert (knowhow / "experiments" / "disk" / "direct_writes.toml").exists()
