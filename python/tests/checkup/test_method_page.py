"""The page about the method: its worked examples are run, in both languages."""

from __future__ import annotations

import shlex
from pathlib import Path

import fork_server
import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = ("check-up-a-job.md", "check-up-a-job.ja.md")


def examples(name: str) -> list[tuple[str, list[str]]]:
    """Commands after `$ ` and the lines below each."""
    found: list[tuple[str, list[str]]] = []
    for line in (ROOT / "docs" / "howto" / name).read_text("utf-8").splitlines():
        if line.startswith("    $ "):
            found.append((line[6:], []))
        elif found and line.startswith("    "):
            found[-1][1].append(line[4:])
        elif found:
            found.append(("", []))
    return [(command, lines) for command, lines in found if command]


@pytest.mark.parametrize("name", PAGES)
def test_the_examples_print_what_the_page_says(name: str) -> None:
    found = examples(name)
    assert len(found) == 4
    for command, lines in found:
        program, *arguments = shlex.split(command)
        assert program == "sysdock"
        done = fork_server.run(*arguments, check=True)
        # The page cuts the second line where it begins to repeat itself.
        for said, printed in zip(lines, done.stdout.splitlines(), strict=False):
            assert printed.startswith(said)


@pytest.mark.parametrize("name", PAGES)
def test_the_page_says_that_the_report_prints_another_number(name: str) -> None:
    text = (ROOT / "docs" / "howto" / name).read_text("utf-8")
    for number in ("0.000478", "0.000265", "0.926", "0.0442", "0.0464", "0.0463"):
        assert number in text
