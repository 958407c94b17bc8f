"""What the command line costs before it does anything."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from sysdock import __version__
from sysdock.cli import VERBS
from sysdock.version import FORMAT_VERSION

ROOT = Path(__file__).resolve().parents[3]

HEAVY = ("duckdb", "numpy", "vl_convert", "importlib.metadata", "asyncio", "pyarrow", "pandas")


def modules_after(*arguments: str) -> set[str]:
    """Modules that are loaded when the command line ends."""
    code = (
        "import sys, sysdock.cli\n"
        "try: sysdock.cli.main(sys.argv[1:])\n"
        "finally: print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([verb, "--help"] for verb in VERBS)])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    loaded = modules_after(*arguments)
    assert "sysdock.cli" in loaded
    assert [name for name in HEAVY if name in loaded] == []


def test_help_loads_no_verb() -> None:
    assert not {name for name in modules_after("--help") if name.startswith("sysdock.cli.")}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sysdock", verb, "--help"], capture_output=True, text=True, check=True
    )
    assert re.search(rf"Example:\n\n +(.*\n +)*?sysdock {verb}\b", done.stdout), done.stdout
    # Without widths of its own a help is as wide as a small terminal.
    assert max(map(len, done.stdout.splitlines())) <= 100


def version(root: Path | None = None) -> str:
    """What `sysdock --version` prints; `root`: with the package of that folder."""
    environment = {**os.environ, "PYTHONPATH": str(root)} if root else None
    command = [sys.executable, "-m", "sysdock", "--version"]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout


def copied(folder: Path) -> Path:
    """The package below `folder`, outside any checkout."""
    shutil.copytree(ROOT / "python/sysdock", folder / "python/sysdock", symlinks=True)
    (folder / "python/sysdock/library/assets/commit").unlink(missing_ok=True)
    return folder / "python"


def test_version_says_commit_and_format() -> None:
    command = ["git", "-C", ROOT, "rev-parse", "--short=9", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert version() == f"sysdock {__version__} (commit {commit}, recording format {FORMAT_VERSION})\n"


def test_version_says_no_commit_where_none_is_known(tmp_path: Path) -> None:
    assert version(copied(tmp_path)) == f"sysdock {__version__} (recording format {FORMAT_VERSION})\n"


def test_a_wheel_says_the_commit_that_it_was_made_of(tmp_path: Path) -> None:
    package = copied(tmp_path)
    (package / "sysdock/library/assets/commit").write_text("abcdef123")
    assert "(commit abcdef123, recording format" in version(package)


def test_both_halves_have_one_version(native: Path) -> None:
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
    assert manifest["workspace"]["package"]["version"] == __version__
    said = subprocess.run([native, "--version"], capture_output=True, text=True, check=True).stdout
    assert said == f"sysdock-native {__version__} (recording format {FORMAT_VERSION})\n"


def test_the_changelog_has_this_version() -> None:
    headings = re.findall(r"(?m)^## (.*)", (ROOT / "CHANGELOG.md").read_text())
    assert headings[0] == "Unreleased"
    assert headings[1].startswith(f"{__version__} (")
