"""What the command line costs before it does anything."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from sysdock import __version__
from sysdock.cli import VERBS

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


def test_version() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sysdock", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"sysdock {__version__}\n"
