"""What is as other programs have it: help of verbs, colours, sizes, manual pages."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from make_recording import RecordingMaker
from sysdock.cli import VERBS, sysdock
from sysdock.cli.sizes import Size

ROOT = Path(__file__).resolve().parents[3]
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class TestHelp:
    """`sysdock help`."""

    @pytest.mark.parametrize("words", [(), ("run",), ("disk",), ("disk", "scan"), ("help",)])
    def test_it_shows_what_the_option_shows(self, cli, words: tuple[str, ...]) -> None:
        done = cli("help", *words)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == cli(*words, "--help").stdout

    def test_an_unknown_verb_is_an_error_with_near_ones(self, cli) -> None:
        done = cli("help", "rum")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("sysdock: unknown verb `rum`\n\nhint: did you mean run")
        assert "unknown verb `scam`" in cli("help", "disk", "scam").stderr
        assert "unknown verb `x`" in cli("help", "run", "x").stderr


class TestColour:
    """--color, NO_COLOR, and terminals."""

    @pytest.fixture
    def folder(self, maker: RecordingMaker) -> Path:
        return maker.make(
            [{"t": i, "call": "read", "path": "/data", "transferred_bytes": 100} for i in range(3)]
        )

    def test_a_pipe_has_none_unless_asked_for(self, cli, folder: Path) -> None:
        plain = cli("diagnose", folder).stdout
        assert not COLOUR.search(plain)
        painted = cli("diagnose", folder, "--color", "always").stdout
        assert COLOUR.search(painted)
        assert COLOUR.sub("", painted) == plain
        assert cli("--color=always", "diagnose", folder).stdout == painted
        assert cli("diagnose", folder, "--color=always", env={"NO_COLOR": "1"}).stdout == painted

    def test_data_has_none(self, cli, folder: Path) -> None:
        for format_ in ("csv", "json"):
            words = ("diagnose", folder, "--format", format_)
            assert cli(*words, "--color", "always").stdout == cli(*words).stdout

    @pytest.mark.parametrize(
        ("words", "variables", "coloured"),
        [
            ((), {}, True),
            (("--color", "never"), {}, False),
            ((), {"NO_COLOR": "1"}, False),
            ((), {"NO_COLOR": ""}, True),
            ((), {"TERM": "dumb"}, False),
        ],
    )
    def test_a_terminal_has_colours(
        self, cli, folder: Path, words: tuple[str, ...], variables: dict[str, str], coloured: bool
    ) -> None:
        environment = {**cli.environment, "TERM": "xterm", **variables}
        ours, theirs = pty.openpty()
        command = cli.command("diagnose", folder, *words)
        process = subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, env=environment)
        os.close(theirs)
        text = read_all(ours)
        assert process.wait() == 0
        assert bool(COLOUR.search(text)) is coloured
        assert "0 findings, " in COLOUR.sub("", text)

    def test_an_error_has_its_name_in_colour(self, cli) -> None:
        done = cli("--color", "always", "diagnose", "nowhere")
        assert done.returncode == 2
        assert done.stderr.startswith("\x1b[1;31msysdock:\x1b[0m nowhere: ")
        assert "\x1b[1mhint:\x1b[0m " in done.stderr

    def test_an_answer_after_an_import(self, cli, native: Path) -> None:
        log = ROOT / "testdata/strace/shell.ttt_T_y.strace"
        plain = cli("import", log, "-o", "a", "--no-report").stdout
        painted = cli("import", log, "-o", "a b", "--color", "always").stdout
        assert COLOUR.search(painted)
        assert len(COLOUR.sub("", painted).splitlines()) == len(plain.splitlines())


def read_all(terminal: int) -> str:
    """What was written to a terminal until its last writer has gone."""
    parts = []
    while True:
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:
            # A terminal without a writer is an error on Linux.
            part = b""
        if not part:
            os.close(terminal)
            return b"".join(parts).decode()
        parts.append(part)


class TestSizes:
    """16M, 4K, 1G."""

    @pytest.mark.parametrize(
        ("text", "size"),
        [("4096", 4096), ("4K", 4096), ("16M", 1 << 24), ("1G", 1 << 30), ("2T", 2 << 40), ("1MB", 10**6)],
    )
    def test_sizes_are_bytes(self, text: str, size: int) -> None:
        assert Size().convert(text, None, None) == size

    @pytest.mark.parametrize(
        ("kind", "text", "fact"),
        [
            (Size(), "4X", "is not a size: write 4096, 4K, 16M or 1GB"),
            (Size(), "0", "is less than 1 bytes"),
            (Size(least=512), "100", "is less than 512 bytes"),
        ],
    )
    def test_what_is_no_size_is_named(self, kind: click.ParamType, text: str, fact: str) -> None:
        with pytest.raises(click.BadParameter, match=fact):
            kind.convert(text, None, None)

    def test_no_option_takes_bytes_without_units(self) -> None:
        """Options that take a plain number of bytes, or of MiB, would have that as their name for it."""
        for names, option in options(sysdock, click.Context(sysdock)):
            if isinstance(option, click.Option):
                assert option.metavar not in ("BYTES", "BYTE", "MIB"), names

    @pytest.mark.parametrize(
        ("words", "ring"), [(["--ring", "8M"], "8M"), (["--ring", "8"], "8"), (["--ring=16384K"], "16384K")]
    )
    def test_a_ring_reaches_the_recorder_which_knows_its_units(
        self, cli, words: list[str], ring: str
    ) -> None:
        (cli.folder / "recorder").write_text('#!/bin/sh\necho "$@" >&2\nexit 2\n')
        (cli.folder / "recorder").chmod(0o755)
        code = (
            "import sys, pathlib, sysdock.recording.native as n; from sysdock.cli import main;"
            "n.find_native = lambda: pathlib.Path('recorder').resolve(); main(sys.argv[1:])"
        )
        command = [sys.executable, "-c", code, "run", *words, "--", "true"]
        done = subprocess.run(command, cwd=cli.folder, env=cli.environment, capture_output=True, text=True)
        assert f" --ring={ring} " in done.stderr


def options(command: click.Command, context: click.Context) -> list[tuple[str, click.Parameter]]:
    """All parameters of a command and those below it, each with the name of its command."""
    found = [(context.command_path, param) for param in command.params]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            found += options(below, click.Context(below, context, info_name=name))
    return found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Manual pages by the names of their files."""
    folder = tmp_path_factory.mktemp("man")
    subprocess.run([sys.executable, ROOT / "tools/man-pages", folder], check=True)
    return {path.name: path.read_text("utf-8") for path in folder.iterdir()}


class TestManualPages:
    """tools/man-pages."""

    def test_there_is_one_for_each_verb(self, pages: dict[str, str]) -> None:
        assert set(pages) == {"sysdock.1", *(f"sysdock-{verb}.1" for verb in VERBS)}

    def test_each_has_the_sections_of_a_manual_page(self, pages: dict[str, str]) -> None:
        for name, text in pages.items():
            assert text.startswith(f'.TH "{name.removesuffix(".1").upper()}" 1 ')
            assert re.findall(r"(?m)^\.SH (.*)", text)[:3] == ["NAME", "SYNOPSIS", "DESCRIPTION"], name
            assert ".SH EXAMPLES\n" in text, name

    def test_every_option_is_in_one(self, pages: dict[str, str]) -> None:
        for path, option in options(sysdock, click.Context(sysdock, info_name="sysdock")):
            if isinstance(option, click.Option) and not option.hidden:
                verb = path.split()[1:2]
                page = pages[f"{'-'.join(['sysdock', *verb])}.1"].replace("\\-", "-")
                assert option.opts[0] in page, f"{path} {option.opts}"

    def test_nothing_in_it_is_taken_for_a_request(self, pages: dict[str, str]) -> None:
        known = {"TH", "SH", "SS", "PP", "TP", "nf", "fi"}
        for name, text in pages.items():
            assert set(re.findall(r"(?m)^[.'](\S*)", text)) <= known, name
            assert "\b" not in text, name
