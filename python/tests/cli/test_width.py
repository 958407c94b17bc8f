"""Every verb on a narrow terminal: prose is not wider than it. Tables and commands may be."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import termios
from pathlib import Path

import fork_server
import pytest
from make_recording import RecordingMaker
from sampling import some
from sysdock.cli import VERBS
from sysdock.probe.series import PLAN
from sysdock.text import width

ROOT = Path(__file__).resolve().parents[3]
LOG = ROOT / "testdata/strace/shell.ttt_T_y.strace"
COLUMNS = 60
_COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")
# What is for a shell: an indented command, also below `Next:` and in an example.
_COMMAND = re.compile(r"\s+(\S+=\S+ |export |sudo |srun sh -c ')*(sysdock|export|systemctl|strace|truss)\b")
_THEN = ("--lake", "lake", "--at", "2026-01-01T01:00", "--last", "1h")
# Each verb as users call it: on something small, and by mistake where it needs a machine of its own.
CALLS: dict[str, list[tuple[str, ...]]] = {
    "run": [("run", "-o", "rec", "--", "true")],
    "import": [("import", str(LOG), "-o", "new"), ("import", str(LOG), "-o", "rec"), ("import", "nowhere")],
    "record": [("record", "-p", "999999999", "-o", "new")],
    "top": [("top", "--sort", "nonsense")],
    "flight": [("flight", "status"), ("flight", "dump")],
    "merge": [("merge", "rec", "other", "-o", "merged"), ("merge", "rec", "-o", "other")],
    "salvage": [("salvage", "rec")],
    "info": [("info", "rec"), ("info", "nowhere")],
    "diagnose": [("diagnose", "rec"), ("diagnose", "rec", "io/small_requests"), ("diagnose", "waits")],
    "show": [("show", "rec", "io/files"), ("show", "rec", "io/file"), ("show", "rec", "time/where")],
    "report": [("report", "rec", "-o", "out.html")],
    "compare": [("compare", "rec", "other"), ("compare", "rec", "other", "io/files"), ("compare", "rec", "x")],
    "checkup": [("checkup",), ("checkup", "rec"), ("checkup", "--user", "9", "--real", "60")],
    "threshold": [("threshold", "jobs.csv")],
    "query": [("query", "rec", "SELECT call, count(*) FROM calls GROUP BY call"), ("query", "rec", "SELEC")],
    "disk": [("disk", "scan", "nowhere"), ("disk", "map", "rec"), ("disk", "diff", "rec", "other")],
    "health": [("health", "nowhere"), ("health", ".", "-o", "rec")],
    "bench": [("bench", "nothing")],
    "probe": [("probe", "status", "--series", "nowhere"), ("probe", "show", "--series", "probes")],
    "agent": [("agent", "print", "4711", "--spool", "nowhere")],
    "collect": [("collect", "--listen", "nonsense")],
    "jobs": [("jobs", "show", "100000", *_THEN), ("jobs", "compare", "100000", "100100", *_THEN),
             ("jobs", "top", *_THEN), ("jobs", "show", "1000", "--lake", "lake")],
    "lake": [("lake", "check", "lake"), ("lake", "compact", "lake"), ("lake", "check", "nowhere")],
    "dump": [("dump", "info", "nowhere"), ("dump", "list"), ("dump", "new", "question", "--into", "pack")],
    "itrace": [("itrace", "decode", "rec"), ("itrace", "attach", "999999999", "-o", "new")],
    "experiment": [("experiment", "list"), ("experiment", "show", "disk/fragments"),
                   ("experiment", "plan", "disk/fragments", "--seed", "1"), ("experiment", "run", "nothing")],
    "export": [("export", "rec", "--to", "csv", "-o", "tables", "--file", "nowhere"), ("export", "rec")],
    "list": [("list",), ("list", "rules")],
    "check": [("check", str(ROOT / "knowhow/analyses/io/files.sql"))],
    "new": [("new", "analysis", "io/slow_calls", "--into", "pack")],
    "help": [("help",), ("help", "run"), ("help", "rum")],
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with small recordings of several kinds, a lake, and a table of jobs."""
    folder = tmp_path_factory.mktemp("narrow")
    maker = RecordingMaker(library, folder)
    maker.make(name="rec")
    maker.make([{"t": i, "call": "read", "path": "/data"} for i in range(3)], name="other", complete=False)
    maker.make_waits()
    (maker.make_probes() / PLAN).write_text("[]")
    (folder / "jobs.csv").write_text(
        "job,user,real,cores\n" + "".join(f"{i},{i},{2 * i + 9},1\n" for i in range(1, 40))
    )
    return folder


@pytest.fixture(scope="module")
def lake(folder: Path) -> Path:
    from sysdock.jobs.generating import generate

    generate(folder / "lake", nodes=2, jobs=2, hours=1, date="2026-01-01", seed=1)
    return folder / "lake"


def on_terminal(cli, folder: Path, words: tuple[str, ...], columns: int = COLUMNS) -> list[str]:
    """The lines that a command prints on a terminal, standard output and standard error together."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in cli.environment.items() if name not in ("COLUMNS", "LINES")}
    wait = fork_server.on_terminal(words, folder, theirs, {**environment, "TERM": "xterm"})
    os.close(theirs)
    text = _COLOUR.sub("", read_all(ours))
    wait()
    # Progress is drawn over itself.
    return [line.rsplit("\r", 1)[-1].rstrip() for line in text.replace("\r\n", "\n").split("\n")]


def read_all(terminal: int) -> str:
    """What was written until the last writer has gone, which is an error on Linux."""
    parts = []
    while True:
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:
            part = b""
        if not part:
            os.close(terminal)
            return b"".join(parts).decode()
        parts.append(part)


def too_wide(lines: list[str], columns: int = COLUMNS) -> list[str]:
    """Lines of prose that are wider than the terminal."""
    return [line for line in lines if width(line) > columns and _is_prose(line, columns)]


def _is_prose(line: str, columns: int) -> bool:
    text = line.strip()
    is_one_word = max(map(len, text.split())) >= columns - 10
    return "  " not in text and not _COMMAND.match(line) and not is_one_word


def test_every_verb_is_tried() -> None:
    assert sorted(CALLS) == sorted(VERBS)


@pytest.mark.parametrize("verb", some(VERBS, 2))
def test_prose_is_not_wider_than_the_terminal(cli, native: Path, folder: Path, lake: Path, verb: str) -> None:
    wide = {}
    for words in [*CALLS[verb], (verb, "--help")]:
        lines = on_terminal(cli, folder, words)
        assert any(lines), words
        if found := too_wide(lines):
            wide[" ".join(words)] = found
    assert wide == {}


@pytest.mark.parametrize("words", [("diagnose", "waits"), ("compare", "rec", "other"), ("checkup", "rec")])
def test_a_wider_terminal_is_used(cli, folder: Path, words: tuple[str, ...]) -> None:
    lines = on_terminal(cli, folder, words, 100)
    assert too_wide(lines, 100) == []
    assert any(width(line) > COLUMNS for line in lines)


def test_a_file_gets_whole_lines(cli, folder: Path) -> None:
    """What is no terminal is read by a program, or by a terminal of another width."""
    done = cli("info", folder / "nowhere")
    assert done.stderr.splitlines()[0].startswith("sysdock: ")
    filtered = ("--file", "a-name-that-nothing-in-it-has")
    done = cli("export", folder / "rec", "--to", "csv", "-o", "tables", *filtered)
    assert "sysdock: --file a-name-that-nothing-in-it-has matches no path in this recording\n" in done.stderr


@pytest.mark.parametrize(
    ("words", "coloured"),
    [
        (("checkup", "rec"), "\x1b[1mWhat to do:\x1b[0m"),
        (("show", "rec", "io/files"), "\x1b[1m"),
        (("compare", "rec", "other"), "\x1b[1mFindings\x1b[0m"),
        (("experiment", "show", "disk/fragments"), "\x1b[1mprepared for each case:\x1b[0m"),
        (("list", "rules"), "\x1b[1m"),
        (("info", "other"), "\x1b[33mNO\x1b[0m"),
    ],
)
def test_headings_and_statuses_are_coloured_where_wanted(
    cli, folder: Path, words: tuple[str, ...], coloured: str
) -> None:
    plain = run_in(cli, folder, *words)
    painted = run_in(cli, folder, "--color", "always", *words)
    assert coloured in painted
    assert "\x1b" not in plain
    assert _COLOUR.sub("", painted) == plain


def run_in(cli, folder: Path, *words: str) -> str:
    cli.folder = folder
    done = cli(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout
