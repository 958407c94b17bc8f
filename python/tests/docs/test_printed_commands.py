"""Every command that sysdock prints can be run as it stands, and every example of the help is of options that exist."""

from __future__ import annotations

import contextlib
import html
import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from make_recording import RecordingMaker
from sysdock.cli import sysdock
from sysdock.library import Library

NAMES = ("a rec", "scanned", "tried")
# Words that stand for something of the reader's.
PLACEHOLDER = re.compile(r"\b(REC|CMD|NAME|FILE|DIR|RULE|ANALYSIS|SERIES|TARGET|LOG|SITE|A B)\b|\.\.\.")
MARKED = re.compile(r"<code[^>]*>(sysdock [^<]+)</code>|<pre[^>]*>(sysdock [^<]+)</pre>")
LINE = re.compile(r"(?:^|\s{2,}|: |`)(sysdock [a-z]+ .*?)(?=\s{2,}|`|$)", re.MULTILINE)


def run(folder: Path, *words: str) -> Result:
    """Run a command in a folder, within this process: starting a hundred of them takes a minute."""
    assert words[0] == "sysdock"
    with contextlib.chdir(folder):
        return CliRunner().invoke(sysdock, list(words[1:]), prog_name="sysdock")


@pytest.fixture(scope="module")
def folder(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recording that rules find much in, a scan and an experiment."""
    folder = tmp_path_factory.mktemp("printed")
    maker = RecordingMaker(library, folder)
    reads = [
        {
            "t": i / 1000,
            "call": "read",
            "path": "/a file.dat",
            "dur_ns": 500_000,
            "transferred_bytes": 100,
            "requested_bytes": 100,
        }
        for i in range(1000)
    ]
    waits = [
        {"t": 1 + i, "call": "fsync", "class": "sync", "path": "/log", "dur_ns": 400_000_000}
        for i in range(3)
    ]
    opens = [
        {"t": 5 + i / 1000, "call": "openat", "path": "/etc/conf", "dur_ns": 300_000, "comm": "tar"}
        for i in range(500)
    ]
    maker.make(reads + waits + opens, name="a rec")
    maker.make_scan("scanned")
    maker.make_experiment("tried")
    return folder


def printed(folder: Path) -> list[str]:
    """The commands in all that is printed and written of the three recordings."""
    found: list[str] = []
    for name in NAMES:
        for words in (
            ["diagnose", name],
            ["diagnose", name, "--lang", "ja"],
            ["info", name],
            ["report", name],
        ):
            done = run(folder, "sysdock", *words)
            assert done.exit_code == 0, done.output
            found += LINE.findall(done.output)
        page = (folder / name / "report.html").read_text("utf-8")
        found += [html.unescape(one or other) for one, other in MARKED.findall(page)]
        found += LINE.findall(
            run(folder, "sysdock", "report", name, "--format", "md", "-o", f"{name}.md").stderr
        )
        found += re.findall(r"`(sysdock [^`]+)`", (folder / f"{name}.md").read_text("utf-8"))
    # In prose, the name of a verb alone is no command.
    whole = {command.strip() for command in found if not PLACEHOLDER.search(command)}
    return sorted(command for command in whole if set(shlex.split(command)) & set(NAMES))


def test_every_printed_command_runs(folder: Path) -> None:
    commands = printed(folder)
    verbs = {command.split()[1] for command in commands}
    assert {"show", "diagnose", "info"} <= verbs
    assert any("diagnose" in command and "io/" in command for command in commands)
    for command in commands:
        done = run(folder, *shlex.split(command))
        assert done.exit_code == 0, f"{command}\n{done.output}"


def examples() -> list[str]:
    """The lines of the examples in the help of all verbs."""
    found = []

    def collect(group: click.Command) -> None:
        found.extend(re.findall(r"^\s+(sysdock .+)$", group.epilog or "", re.MULTILINE))
        if isinstance(group, click.Group):
            context = click.Context(group)
            for name in group.list_commands(context):
                command = group.get_command(context, name)
                assert command
                collect(command)

    collect(sysdock)
    return found


@pytest.mark.parametrize("example", examples())
def test_an_example_of_the_help_is_of_options_that_exist(example: str) -> None:
    # Behind some spaces stands what it is for.
    words = shlex.split(re.split(r"\s{3,}|\s+#", example)[0])[1:]
    command: click.Command = sysdock
    context = click.Context(command, info_name="sysdock")
    while isinstance(command, click.Group):
        inner = command.get_command(context, words.pop(0))
        assert inner, example
        command, context = inner, click.Context(inner, parent=context)
    # What the words mean is a matter of files, which are not here; that they are options of the verb is not.
    command.make_parser(context).parse_args(args=words)
