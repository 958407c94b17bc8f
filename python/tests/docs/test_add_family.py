"""docs/howto/add-a-family.md is followed: its files, its table and its one line are all that a family of events needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "howto" / "add-a-family.md"
LIST = "crates/bpf/src/families/mod.rs"


def blocks(page: str) -> list[tuple[str, str, str]]:
    """Code blocks that stand behind the name of a file in bold: file, language, text."""
    found = re.findall(
        r"\*\*((?:crates|knowhow)/[^*]+)\*\*:\n\n```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL
    )
    return [(file, language, text) for file, language, text in found]


def apply(text: str, diff: str) -> str:
    """A text with the lines of a diff that begin with a plus sign, behind the line before them."""
    before, added = diff.splitlines()
    assert before.startswith(" ")
    assert added.startswith("+")
    assert text.count(before[1:] + "\n") == 1
    return text.replace(before[1:] + "\n", f"{before[1:]}\n{added[1:]}\n")


@pytest.mark.more
def test_a_family_needs_its_folder_its_table_and_one_line(tmp_path: Path) -> None:
    files = blocks(PAGE.read_text("utf-8"))
    names = [file for file, _, _ in files]
    folder = "crates/bpf/src/families/migrations"
    expected = ["events.h", "migrations.bpf.c", "mod.rs"]
    assert names == ["knowhow/tables/migrations.toml", *(f"{folder}/{name}" for name in expected), LIST]
    # Cargo tells packages apart by their places in their workspace. At the same places, these would take those of the checkout out of `target`.
    copy = tmp_path / "copy"
    for part in ("crates", "knowhow/tables", "knowhow/sentences"):
        shutil.copytree(ROOT / part, copy / part)
    for part in ("Cargo.lock", "rustfmt.toml", ".cargo/config.toml"):
        (tmp_path / part).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / part, tmp_path / part)
    workspace = (ROOT / "Cargo.toml").read_text("utf-8")
    (tmp_path / "Cargo.toml").write_text(workspace.replace('"crates/', '"copy/crates/'), "utf-8")
    for file, language, text in files:
        place = copy / file
        place.parent.mkdir(exist_ok=True)
        place.write_text(apply(place.read_text("utf-8"), text) if language == "diff" else text, "utf-8")
    sources = [str(copy / folder / "mod.rs"), str(copy / LIST)]
    subprocess.run(["rustfmt", "--edition", "2024", "--check", *sources], check=True, cwd=tmp_path)
    # What other packages are made of is there already. Its own test takes some minutes to build, so it is run on demand only.
    whole = bool(os.environ.get("SYSDOCK_RUN_FAMILY"))
    command = ["test", "--lib", "migrations"] if whole else ["check", "--lib", "--tests"]
    target = {"CARGO_TARGET_DIR": str(ROOT / "target")}
    done = subprocess.run(
        [
            "cargo",
            command[0],
            "--profile",
            "tests",
            "--locked",
            "--offline",
            "-p",
            "sysdock-bpf",
            *command[1:],
        ],
        cwd=tmp_path,
        env={**os.environ, **target},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr
    if whole:
        assert "moves_have_rows ... ok" in done.stdout
