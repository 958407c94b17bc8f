"""The code blocks for other tools are run on a recording of a real log, without sysdock; what the READMEs state."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from sysdock.recording.native import import_quietly

ROOT = Path(__file__).resolve().parents[3]
LOG = ROOT / "testdata" / "strace" / "odd_files.ttt_T_y.strace"
READMES = ("README.md", "README.ja.md")
PAGES = ("docs/howto/use-other-tools.md", "docs/howto/use-other-tools.ja.md")


def python_blocks(name: str) -> list[str]:
    """The blocks of a page that are marked as Python."""
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / name).read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(native: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the recording `rec` in it."""
    folder = tmp_path_factory.mktemp("readme")
    import_quietly(LOG, folder / "rec")
    return folder


@pytest.mark.parametrize("name", PAGES)
def test_three_tools_are_shown(name: str) -> None:
    tools = [block.splitlines()[0] for block in python_blocks(name)]
    assert tools == ["import pandas as pd", "import polars as pl", "import duckdb"]


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("name", PAGES)
def test_code_blocks_run_and_agree_with_the_recording(name: str, number: int, folder: Path) -> None:
    block = python_blocks(name)[number]
    assert "sysdock" not in block
    done = subprocess.run(
        [sys.executable, "-c", block], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    path, moved = largest(folder)
    # polars shortens long texts.
    assert path[:24] in done.stdout
    assert str(moved) in done.stdout


def largest(folder: Path) -> tuple[str, int]:
    """The path with most bytes, and their number, by another way than the blocks go."""
    parts = [str(part) for part in (folder / "rec" / "calls").iterdir()]
    moved = duckdb.sql(
        f"SELECT path_id, sum(transferred_bytes) AS moved FROM read_parquet({parts}) WHERE path_id IS NOT NULL "
        "GROUP BY path_id HAVING moved > 0"
    ).fetchall()
    names = dict(duckdb.sql(f"SELECT path_id, path FROM '{folder}/rec/paths/part-0000.parquet'").fetchall())
    path_id, most = max(moved, key=lambda row: row[1])
    return names[path_id], most


def test_the_options_of_strace_are_those_of_the_error_messages() -> None:
    messages = (ROOT / "crates" / "native" / "src" / "messages" / "strace.rs").read_text("utf-8")
    for name in READMES:
        assert "strace -f -ttt -T -y -o run.strace CMD" in (ROOT / name).read_text("utf-8")
    assert "strace -f -ttt -T -y -o run.strace CMD" in messages


@pytest.mark.parametrize("name", READMES)
def test_a_readme_is_read_in_a_minute(name: str) -> None:
    assert 60 <= len((ROOT / name).read_text("utf-8").splitlines()) <= 80


def test_both_readmes_show_the_same_commands() -> None:
    first, second = (
        set(re.findall(r"(?:`|\$ )sysdock ([a-z]+)", (ROOT / name).read_text("utf-8"))) for name in READMES
    )
    assert first == second
